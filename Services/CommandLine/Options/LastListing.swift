import Foundation
import Glibc
import Hosting
import PhotoModel
import SystemPackage

/// The assets that `safelight fetch` printed last, so that `@3` names the third of them.
///
/// They are stored in a file of the user, one identifier a line. Without a home folder nothing is stored.
struct LastListing {
    /// The maximum number of assets in a listing.
    static let limit = 100_000
    /// The note for a user whose listing cannot be written.
    static let unwritten =
        "the listing cannot be written, so @1 and the like name no asset; set XDG_STATE_HOME to a folder that can be "
        + "written"
    /// The note for a user whose listing can be neither replaced nor removed.
    static let outdated =
        "the listing cannot be written, so @1 and the like name assets of an earlier one; set XDG_STATE_HOME to a "
        + "folder that can be written"

    private let path: String?

    /// Uses $XDG_STATE_HOME/safelight/listing, else ~/.local/state/safelight/listing.
    init(environment: (String) -> String? = { Environment[$0] }) {
        let home = environment("HOME").map { $0 + "/.local/state" }
        path = (environment("XDG_STATE_HOME") ?? home).map { $0 + "/safelight/listing" }
    }

    /// A new listing. It replaces the last one when its first assets are added.
    ///
    /// If it cannot be written, the last one is removed, because `@1` must not name another asset than the one printed.
    struct Recorder: ~Copyable {
        private let path: String?
        private let partial: String
        private var file: FileDescriptor?
        private var count = 0

        fileprivate init(_ path: String?) {
            self.path = path
            partial = (path ?? "") + ".\(getpid()).part"
            guard let path else { return }
            let folder = String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex))
            try? FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
            file = try? .open(
                FilePath(partial),
                .writeOnly,
                options: [.create, .truncate],
                permissions: [.ownerReadWrite]
            )
            isUnwritten = file == nil
            if file == nil { isOutdated = unlink(path) != 0 && access(path, R_OK) == 0 }
        }

        /// True if the listing cannot be written.
        private var isUnwritten = false
        /// True if the last listing can be neither replaced nor removed.
        private(set) var isOutdated = false
        /// The note for the user; nil if the listing can be written, or if there is no home folder.
        var note: String? { isOutdated ? LastListing.outdated : isUnwritten ? LastListing.unwritten : nil }

        /// Adds assets and writes them. They are never mixed with those of a command that runs at the same time, which
        /// replaces the file.
        mutating func append(_ ids: [ObjectID]) {
            guard let path, let file else { return }
            let added = ids.prefix(LastListing.limit - count)
            _ = try? file.writeAll(added.map { $0.text + "\n" }.joined().utf8)
            if !hasReplaced { rename(partial, path) }
            hasReplaced = true
            count += added.count
        }

        private var hasReplaced = false

        deinit {
            try? file?.close()
            if file != nil, !hasReplaced { unlink(partial) }
        }
    }

    /// Begins a listing. The last one remains until assets are added; if the new one cannot be written, the last one is
    /// removed.
    func begin() -> Recorder { Recorder(path) }

    /// Replaces the listing.
    func write(_ ids: [ObjectID]) {
        var recorder = begin()
        recorder.append(ids)
    }

    /// Returns the assets of `@3`, or of `@2-5` in this order.
    ///
    /// - Throws: ``CommandFailure`` if the listing has no such number
    func ids(_ text: String) throws -> [ObjectID] {
        let numbers = text.dropFirst().split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard (1...2).contains(numbers.count), let first = numbers[0], let last = numbers[numbers.count - 1],
            first >= 1, last >= first
        else {
            throw CommandFailure.usage(
                "\"\(text.prefix(40))\" is not a number of the last listing; use @3, or @2-5 for several"
            )
        }
        let stored = read()
        guard last <= stored.count else {
            throw CommandFailure.usage(
                stored.isEmpty
                    ? "there is no listing, or the last one has no assets; run `safelight fetch` first"
                    : "the last listing has \(QuantityFormatter.count(stored.count, "asset")), not \(last)"
            )
        }
        return Array(stored[(first - 1)..<last])
    }

    private func read() -> [ObjectID] {
        guard let path, let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
        return text.split(separator: "\n").prefix(Self.limit).compactMap { ObjectID(String($0)) }
    }
}

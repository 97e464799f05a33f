import Contracts
import Glibc
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Synchronization
import SystemPackage

/// What became of one file.
enum ImportOutcome: Sendable {
    case imported(ObjectID, sequence: Int64)
    /// Its bytes were in the library already; they may have replaced a damaged file.
    case duplicate(ObjectID, isHealed: Bool)
    /// The file cannot be taken in; the others can.
    case broken(RPCError)
}

/// One file, and what became of it.
struct FileOutcome: Sendable {
    let path: FilePath
    let outcome: ImportOutcome

    init(_ path: FilePath, _ outcome: ImportOutcome) {
        self.path = path
        self.outcome = outcome
    }
}

/// Takes files into the library, several at a time, each in a transaction of its own.
///
/// Nothing has to be remembered between runs: bytes that the library has already are recognised by the catalog.
struct ImportRun: Sendable {
    let library: PhotoLibrary
    /// Files under way at once.
    let width: Int
    /// Files stay where they are instead of being copied.
    let isReferenced: Bool
    /// Stored files of bytes that the library has are read and compared.
    let verifies: Bool
    /// Names the transactions of this run, so that one that is sent again is not done twice.
    private let name = "import-" + PhotoLibrary.randomTransaction()
    private let access: Access

    /// How the catalog gets at the bytes.
    private final class Access: Sendable {
        private let mayNamePaths: Mutex<Bool>
        init(mayNamePaths: Bool) { self.mayNamePaths = Mutex(mayNamePaths) }
        var byPath: Bool { mayNamePaths.withLock { $0 } }
        func refusePaths() { mayNamePaths.withLock { $0 = false } }
    }

    /// The longest that one file may take, restarts of services included.
    static let deadline = Duration.seconds(300)
    private static let longestSidecar = 4 << 20

    init(library: PhotoLibrary, width: Int, isReferenced: Bool = false, verifies: Bool = false) {
        self.library = library
        self.verifies = verifies
        self.isReferenced = isReferenced
        self.width = max(1, width)
        // Paths mean something to a catalog on this machine alone.
        self.access = Access(mayNamePaths: library.endpoints.catalog.transport == .ipc)
    }

    /// Imports items until there are none; stops early, finishing what is under way, when that is wished.
    ///
    /// - Parameters:
    ///   - next: the next item; asked when there is room for it, so that no more wait than are under way
    ///   - tell: called for each file that is done, one at a time
    /// - Throws: what makes going on pointless: nobody answers, the disk is full
    func run(
        _ next: () -> ImportItem?,
        stop: StopRequest,
        tell: (_ index: Int, _ outcome: FileOutcome) throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: (Int, [FileOutcome]).self) { group in
            var number = 0
            func start() {
                guard !stop.isRequested, let item = next() else { return }
                let index = number
                number += 1
                group.addTask { (index, try await self.take(item, name: "\(index)")) }
            }
            for _ in 0..<width { start() }
            while let (index, outcomes) = try await group.next() {
                for outcome in outcomes { try tell(index, outcome) }
                start()
            }
        }
    }

    /// Takes an item in; files that do not belong together after all become assets of their own.
    private func take(_ item: ImportItem, name: String) async throws -> [FileOutcome] {
        do throws(RPCError) {
            let result = try await create(item, "\(self.name)-\(name)")
            guard let id = result.id("file") else {
                throw Refusal.internalError.error("the catalog did not name the new asset")
            }
            let isKnown = result.duplicates.contains("file")
            let outcome: ImportOutcome =
                isKnown
                ? .duplicate(id, isHealed: !result.healed.isEmpty) : .imported(id, sequence: result.sequence)
            return [FileOutcome(item.main, outcome)]
        } catch {
            if error.refusal == .resourcesDisagree || item.files.count > 1 && error.isOfTheFile {
                var outcomes: [FileOutcome] = []
                for (number, part) in item.apart.enumerated() {
                    outcomes += try await take(part, name: "\(name).\(number)")
                }
                return outcomes
            }
            if item.sidecar != nil, error.isOfTheFile {
                var alone = item
                alone.sidecar = nil
                var outcomes = try await take(alone, name: name + ".alone")
                // Where the picture itself is broken, that is all there is to say.
                if error.data["sidecar"] == true, let path = item.sidecar {
                    outcomes.append(FileOutcome(path, .broken(error)))
                }
                return outcomes
            }
            guard error.isOfTheFile else { throw error }
            return [FileOutcome(item.main, .broken(error))]
        }
    }

    private func create(_ item: ImportItem, _ transaction: String) async throws(RPCError) -> PerformChanges.Result {
        // JSON is UTF-8; a name that is not goes by its bytes.
        if access.byPath || isReferenced, let resources = resourcesByPath(item) {
            let sidecar = item.sidecar?.exactText.map { NewResource(source: .path($0)) }
            do throws(RPCError) {
                return try await perform(resources, sidecar, [], transaction)
            } catch  where !isReferenced && (error.refusal == .accessDenied || error.refusal == .accessRestricted) {
                access.refusePaths()
            }
        }
        guard !isReferenced else {
            throw Refusal.invalidResource.error("its name is not UTF-8; only files with such names can be referenced")
        }
        var attachments: [Bytes] = []
        var room = Int64(BeginUpload.chunkBytes)
        var resources: [NewResource] = []
        for (type, path) in item.files {
            let source = try await source(path, &attachments, &room)
            resources.append(
                NewResource(
                    type: type,
                    source: source,
                    originalFilename: path.lastComponent?.string,
                    verifies: verifies
                )
            )
        }
        var sidecar: NewResource?
        if let path = item.sidecar {
            let file = try InputBytes(path)
            sidecar = NewResource(source: .attachment(attachments.count), originalFilename: path.lastComponent?.string)
            attachments.append(try file.read(limit: Self.longestSidecar))
        }
        return try await perform(resources, sidecar, attachments, transaction + "-bytes")
    }

    private func resourcesByPath(_ item: ImportItem) -> [NewResource]? {
        let files = item.files
        let resources = files.compactMap { type, path in
            path.exactText.map {
                NewResource(
                    type: type,
                    source: .path($0),
                    originalFilename: path.lastComponent?.string,
                    isReferenced: isReferenced,
                    verifies: verifies
                )
            }
        }
        return resources.count == files.count ? resources : nil
    }

    /// Small files go with the request, large ones before it.
    private func source(
        _ path: FilePath,
        _ attachments: inout [Bytes],
        _ room: inout Int64
    ) async throws(RPCError) -> ResourceSource {
        let file = try InputBytes(path)
        if file.size <= room {
            room -= file.size
            attachments.append(try file.read(limit: Int(file.size)))
            return .attachment(attachments.count - 1)
        }
        return .upload(try await library.upload(file: file.name, deadline: Self.deadline, verifies: verifies))
    }

    private func perform(
        _ resources: [NewResource],
        _ sidecar: NewResource?,
        _ attachments: [Bytes],
        _ transaction: String
    ) async throws(RPCError) -> PerformChanges.Result {
        try await library.perform(
            [.createAsset(.init(ref: "file", resources: resources, sidecar: sidecar))],
            attachments: attachments,
            transaction: transaction,
            deadline: Self.deadline
        )
    }
}

/// An open file that was named on this machine; closes itself.
private final class InputBytes {
    let size: Int64
    private let file: FileDescriptor
    /// A name for the open file, whatever happens to its path.
    var name: String { "/proc/self/fd/\(file.rawValue)" }

    init(_ path: FilePath) throws(RPCError) {
        do {
            file = try FileDescriptor.open(path, .readOnly)
            size = try file.seek(offset: 0, from: .end)
        } catch {
            throw Refusal.missingResource.error("\(path) cannot be read: \(error)")
        }
    }

    deinit { try? file.close() }

    /// All bytes, at most so many.
    func read(limit: Int) throws(RPCError) -> Bytes {
        var bytes = Bytes(repeating: 0, count: min(Int(size), limit))
        do {
            var filled = 0
            while filled < bytes.count {
                let count = try bytes.withUnsafeMutableBytes { buffer in
                    try file.read(fromAbsoluteOffset: Int64(filled), into: .init(rebasing: buffer[filled...]))
                }
                if count == 0 { break }
                filled += count
            }
            return Bytes(bytes.prefix(filled))
        } catch {
            throw Refusal.missingResource.error("it cannot be read: \(error)")
        }
    }
}

extension RPCError {
    /// The fault lies in this one file: others may well be taken in.
    var isOfTheFile: Bool {
        switch refusal {
        case .notEnoughSpace, .accessDenied, .accessRestricted, .libraryOffline, .userCancelled, .busy,
            .deadlineExceeded, .connectionLost, .behind, .unavailable, .idReused, .methodNotFound, .invalidParams:
            false
        default: true
        }
    }
}

extension FilePath {
    /// The path as text, where it is UTF-8.
    var exactText: String? { withPlatformString { String(validatingCString: $0) } }
}

import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization
import TestSupport
import Testing

/// A log of the changes that one subscriber received.
struct SubscriberLog: Sendable {
    let received = AwaitableValue<[Int64: [UInt8]]>([:])
    /// Changes that were out of order or left a gap.
    let problems = AwaitableValue<[String]>([])
    /// The tokens from which the reader had to restart after `token_expired`.
    let expired = AwaitableValue<[ChangeToken]>([])
    let task: Task<Void, any Error>

    /// - Parameter pause: the time that the reader spends on each change
    init(_ library: PhotoLibrary, since token: ChangeToken, pause: Duration = .zero) {
        task = Task { [received, problems, expired] in
            var last = token.sequence
            for try await event in library.changes(since: token) {
                switch event {
                case .caughtUp: continue
                case .expired(let head, _):
                    last = head.sequence
                    expired.withLock { $0.append(head) }
                case .change(let record):
                    if record.sequence != last + 1 { problems.withLock { $0.append("\(last) -> \(record.sequence)") } }
                    last = record.sequence
                    received.withLock { $0[record.sequence] = record.bytes }
                    if pause > .zero { try await Task.sleep(for: pause) }
                }
            }
        }
    }
}

/// Compares what subscribers received with the catalog's change table, read from the database file itself and so
/// independently of the catalog, the broker and the clients.
enum FeedChecker {
    /// Libraries that were generated in this process, by their number of assets.
    private static let generated = Mutex<[Int: TemporaryFolder]>([:])

    /// Gives the services a generated library. Each is generated once and copied; the catalog begins a new history in a
    /// copy.
    private static func copyLibrary(assets: Int, to services: SafelightFixture) throws {
        guard !TestStore.isPostgreSQL else { return try services.generateLibrary(assets: assets) }
        try generated.withLock { folders in
            let library = services.folder.file("library")
            if let existing = folders[assets] {
                return try FileManager.default.copyItem(atPath: existing.file("library"), toPath: library)
            }
            try services.generateLibrary(assets: assets)
            let folder = try TemporaryFolder("generated")
            folder.removeAtExit()
            try FileManager.default.copyItem(atPath: library, toPath: folder.file("library"))
            folders[assets] = folder
        }
    }

    /// Runs the body with a catalog and a broker over a generated library.
    ///
    /// - Parameter arguments: flags of single services
    static func withServices(
        assets: Int = 50,
        environment: [String: String] = [:],
        arguments: [SafelightFixture.Service: [String]] = [:],
        _ body: (SafelightFixture, PhotoLibrary, [ObjectID]) async throws -> Void
    ) async throws {
        let services = try SafelightFixture("faults", environment: environment, arguments: arguments)
        try copyLibrary(assets: assets, to: services)
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        let ids = try await library.assets(FetchDescription(.assets), count: 1000).assets.map(\.id)
        try await body(services, library, ids)
        await library.close()
        #expect(services.stop() == [])
    }

    /// Commits `count` caption changes, `lanes` at a time.
    static func commit(_ count: Int, _ ids: [ObjectID], _ library: PhotoLibrary, lanes: Int = 8) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<lanes {
                group.addTask {
                    for number in stride(from: lane, to: count, by: lanes) {
                        let patch = AssetPatch(caption: .some("\(number) \(UUID().uuidString.prefix(8))"))
                        _ = try await library.perform([
                            .updateAsset(.init(id: .id(ids[number % ids.count]), set: patch))
                        ])
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Returns the records after a token, as stored in the database file, by sequence.
    ///
    /// - Parameter last: the last sequence to return
    static func table(
        _ services: SafelightFixture,
        after token: ChangeToken,
        to last: Int64 = .max
    ) throws -> [Int64: [UInt8]] {
        let query =
            "SELECT sequence || ' ' || hex(record) FROM change WHERE sequence > \(token.sequence) "
            + "AND sequence <= \(last)"
        let read = try RunningProgram.run(
            "/usr/bin/sqlite3",
            ["-readonly", "-cmd", ".timeout 10000", services.folder.file("library/library.sqlite"), query]
        )
        guard read.status == 0 else {
            throw FixtureError(description: "the change table cannot be read: \(read.errors)")
        }
        var table: [Int64: [UInt8]] = [:]
        for line in read.output.split(separator: "\n") {
            guard let space = line.firstIndex(of: " "), let sequence = Int64(line[..<space]) else { continue }
            table[sequence] = Self.bytes(ofHex: line[line.index(after: space)...].utf8)
        }
        return table
    }

    private static func bytes(ofHex digits: Substring.UTF8View) -> [UInt8] {
        func value(_ digit: UInt8) -> UInt8 { digit < 58 ? digit - 48 : digit - 55 }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        var high: UInt8?
        for digit in digits {
            if let upper = high {
                bytes.append(upper << 4 | value(digit))
                high = nil
            } else {
                high = value(digit)
            }
        }
        return bytes
    }

    /// Expects that within a minute every reader has exactly the catalog's records, byte for byte and in order.
    static func expectComplete(_ readers: [SubscriberLog], _ services: SafelightFixture, after token: ChangeToken)
        async throws
    {
        let table = try table(services, after: token)
        for (number, reader) in readers.enumerated() {
            try await waitUntil("reader \(number) is complete") { reader.received.current.count >= table.count }
            let received = reader.received.current
            let wrong = Set(table.keys).union(received.keys).filter { table[$0] != received[$0] }.sorted()
            #expect(wrong.isEmpty, "reader \(number) of \(readers.count) is wrong at \(wrong.prefix(10))")
            #expect(reader.problems.current == [], "reader \(number)")
            reader.task.cancel()
        }
    }
}

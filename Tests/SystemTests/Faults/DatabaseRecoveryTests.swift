import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Database files damaged below the database: no acknowledged transaction is lost silently.
///
/// Each round restores the content that a killed catalog left into the same files: in a copied folder the library would
/// begin a new history for that reason alone. `SAFELIGHT_SOAK` runs more random rounds.
@Suite(.serialized, .timeLimit(.minutes(20)))
struct DatabaseRecoveryTests {
    private static let transactions = 12

    /// The files of a catalog that was killed after its last acknowledgement, and the acknowledged state.
    private struct Remains {
        let folder: TemporaryFolder
        let library: String
        let tokens: [ChangeToken]
        /// The content of the database's files and of the head file, by their names.
        private let content: [String: Data]

        private static let names = ["library.sqlite", "library.sqlite-wal", "library.sqlite-shm", "head"]

        init(_ folder: TemporaryFolder, _ tokens: [ChangeToken]) throws {
            (self.folder, self.tokens, library) = (folder, tokens, folder.file("library"))
            var content: [String: Data] = [:]
            for name in Self.names { content[name] = try Data(contentsOf: URL(filePath: "\(library)/\(name)")) }
            self.content = content
            try #require(link(library + "/head", folder.file("head")) == 0)
        }

        /// Restores the content that the killed catalog left into the same files.
        func restore() throws {
            // A start replaces the head file with another file.
            unlink(library + "/head")
            try #require(link(folder.file("head"), library + "/head") == 0)
            for (name, bytes) in content { try bytes.write(to: URL(filePath: "\(library)/\(name)")) }
        }
    }

    private static func remains() async throws -> Remains {
        let services = try SafelightFixture("recovery")
        try services.start([.catalog])
        let library = try services.library()
        var tokens: [ChangeToken] = []
        for number in 0..<transactions {
            tokens.append(
                try await library.perform([.createCollection(.init(ref: "a", title: "\(number)"))]).token
            )
        }
        services.killHard(.catalog)
        await library.close()
        return try Remains(services.folder, tokens)
    }

    private static func log(_ remains: Remains) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: remains.library + "/library.sqlite-wal")))
    }

    /// Returns true if anything is left of the library's database, as `sqlite3` reads a copy of it.
    private static func hasLibrary(_ library: String) throws -> Bool {
        let copy = try TemporaryFolder("database-copy")
        for ending in ["", "-wal"] where FileManager.default.fileExists(atPath: library + "/library.sqlite" + ending) {
            try FileManager.default.copyItem(
                atPath: library + "/library.sqlite" + ending,
                toPath: copy.file("library.sqlite") + ending
            )
        }
        let query = [copy.file("library.sqlite"), "SELECT count(*) FROM library"]
        return try RunningProgram.run(try Needed.program("sqlite3"), query).output == "1\n"
    }

    /// Starts a catalog on damaged files, and compares its state with the acknowledged one.
    ///
    /// - Returns: true if the history continues
    @discardableResult
    private static func check(
        _ what: String,
        _ remains: Remains,
        _ operate: (_ database: String, _ log: [UInt8]) throws -> Void
    ) async throws -> Bool {
        try remains.restore()
        let copy = remains.library
        let services = try SafelightFixture("recovered", environment: ["SAFELIGHT_LIBRARY": copy])
        try operate(copy + "/library.sqlite", try Self.log(remains))
        guard try Self.hasLibrary(copy) else {
            // Although the database is empty, the head file keeps the catalog from creating a new library.
            let refused = try RunningProgram.run("catalog", [], environment: services.environment, seconds: 20)
            #expect(refused.errors.contains("the database is empty"), "\(what): \(refused.errors)")
            return false
        }
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        let last = try #require(remains.tokens.last)
        let head = try await library.currentToken().token
        let albums = try await library.collections(
            Fetch(.collections(type: .album, subtype: nil)).wireForm,
            count: 1000
        ).collections
        let titles = Set(albums.compactMap(\.title).compactMap { Int($0) })
        // The remaining transactions are a prefix of the original ones: no hole, and none applied in part.
        #expect(titles == Set(0..<titles.count), "\(what): \(titles.sorted())")
        let continues = head.library == last.library
        if continues {
            #expect(head.sequence == last.sequence && titles.count == transactions, "\(what): acknowledged but lost")
            let records = try await library.changeBroker.ask(FeedSince(token: remains.tokens[0])).result.records
            #expect(records.count == transactions - 1, "\(what)")
        } else {
            #expect(head.sequence >= last.sequence, "\(what): a sequence would be assigned twice")
            for token in [remains.tokens[0], last] {
                let error = await #expect(throws: RPCError.self, "\(what)") {
                    try await library.changeBroker.ask(FeedSince(token: token))
                }
                #expect(error?.errorCode == .tokenExpired, "\(what)")
            }
            // Subscribers are notified, and do not diverge silently.
            var feed = library.changes(since: last).makeAsyncIterator()
            guard case .expired = try await feed.next() else {
                Issue.record("\(what): a subscriber was not notified")
                return false
            }
        }
        _ = try await library.perform([.createCollection(.init(ref: "a", title: "\(titles.count)"))])
        await library.close()
        #expect(services.stop() == [], "\(what)")
        try DatabaseCheck.expectIntact(copy + "/library.sqlite", what)
        return continues
    }

    @Test func `a WAL that is cut, damaged or removed leaves a whole prefix, and the loss is reported`()
        async throws
    {
        var random = SeededRandom(named: "damaged logs")
        let remains = try await Self.remains()
        let size = try Self.log(remains).count
        #expect(size > 32 + Self.transactions * 4120, "the WAL contains the transactions")
        func write(_ bytes: [UInt8], _ database: String) throws {
            try Data(bytes).write(to: URL(filePath: database + "-wal"))
        }
        let untouched: [(what: String, operate: (String, [UInt8]) throws -> Void)] = [
            ("as it was left", { _, _ in }), ("without -shm", { path, _ in unlink(path + "-shm") }),
            (
                "with a -shm of noise",
                { path, _ in
                    try Data((0..<32_768).map { UInt8(truncatingIfNeeded: $0 &* 37) }).write(
                        to: URL(filePath: path + "-shm")
                    )
                }
            ),
            ("bytes after the log's end", { path, log in try write(log + [1, 2, 3], path) }),
        ]
        for (what, operate) in untouched {
            let continues = try await Self.check(what, remains, operate)
            #expect(continues, "\(what)")
        }
        for (what, operate) in [
            ("without -wal", { path, _ in unlink(path + "-wal") }),
            ("an empty log", { path, _ in try write([], path) }),
        ] as [(String, (String, [UInt8]) throws -> Void)] {
            let continues = try await Self.check(what, remains, operate)
            #expect(!continues, "\(what)")
        }
        // A WAL has a header of 32 bytes; each frame is a header of 24 bytes and a page of 4,096.
        var cuts = [31, 32, 33, size - 1, size - 4096, size - 4120, size - 4121]
        let rounds = TestEnvironment.rounds(3)
        cuts += (0..<rounds).map { _ in Int.random(in: 1..<size, using: &random) }
        var (continued, begun) = (0, 0)
        for cut in cuts {
            let continues = try await Self.check("WAL cut at \(cut) of \(size)", remains) { path, log in
                try write(Array(log.prefix(cut)), path)
            }
            if continues { continued += 1 } else { begun += 1 }
        }
        for _ in 0..<rounds {
            let offset = Int.random(in: 0..<size, using: &random)
            let bit = Int.random(in: 0..<8, using: &random)
            let continues = try await Self.check("bit \(bit) of byte \(offset) of \(size)", remains) { path, log in
                var bytes = log
                bytes[min(offset, bytes.count - 1)] ^= 1 << bit
                try write(bytes, path)
            }
            if continues { continued += 1 } else { begun += 1 }
        }
        TestPaths.report("a WAL of \(size) bytes, cut or flipped: \(continued) histories continued, \(begun) began")
        #expect(begun > 0)
    }

    @Test func `if one of the two slots of the head file is damaged the other is used`() async throws {
        let remains = try await Self.remains()
        for slot in [0, 4096] {
            let continues = try await Self.check("head's slot at \(slot)", remains) { database, _ in
                let path = (database as NSString).deletingLastPathComponent + "/head"
                var bytes = try Data(contentsOf: URL(filePath: path))
                bytes[slot + 40] ^= 0xFF
                try bytes.write(to: URL(filePath: path))
            }
            #expect(continues, "slot at \(slot)")
        }
    }
}

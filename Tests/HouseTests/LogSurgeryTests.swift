import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// What is left of the database's files after a fault below it (fault F16): nothing acknowledged is silently missing.
///
/// Each round works on a copy of the files that a killed catalog left. `SAFELIGHT_SOAK` gives more rounds of chance.
@Suite(.serialized, .timeLimit(.minutes(20)))
struct LogSurgeryTests {
    private static let transactions = 12

    /// The files of a catalog that was killed after its last acknowledgement, and what it had said.
    private struct Remains {
        let folder: TemporaryFolder
        let library: String
        let tokens: [ChangeToken]
    }

    private static func remains() async throws -> Remains {
        let house = try RunningHouse("f16")
        try house.start([.catalog])
        let library = try house.library()
        var tokens: [ChangeToken] = []
        for number in 0..<transactions {
            tokens.append(
                try await library.perform([.createCollection(.init(ref: "a", title: "\(number)"))]).token
            )
        }
        house.killHard(.catalog)
        await library.close()
        return Remains(folder: house.folder, library: house.folder.file("library"), tokens: tokens)
    }

    /// Starts a catalog on a copy that was operated on, and holds what it says against what was acknowledged.
    ///
    /// - Returns: whether the history goes on as it was
    @discardableResult
    private static func check(
        _ remains: Remains,
        _ what: String,
        _ operate: (_ database: String) throws -> Void
    ) async throws -> Bool {
        let house = try RunningHouse("f16-copy")
        let copy = house.folder.file("library")
        try FileManager.default.copyItem(atPath: remains.library, toPath: copy)
        try operate(copy + "/library.sqlite")
        try house.start([.catalog, .changeBroker])
        let library = try house.library()
        let last = try #require(remains.tokens.last)
        let head = try await library.currentToken().token
        let albums = try await library.collections(
            Fetch(.collections(type: .album, subtype: nil)).wireForm,
            count: 1000
        ).collections
        let titles = Set(albums.compactMap(\.title).compactMap { Int($0) })
        // Whatever is left is a beginning of what there was: no hole, and no half of a transaction.
        #expect(titles == Set(0..<titles.count), "\(what): \(titles.sorted())")
        let goesOn = head.library == last.library
        if goesOn {
            #expect(head.sequence == last.sequence && titles.count == transactions, "\(what): acknowledged, and gone")
            let records = try await library.changeBroker.ask(FeedSince(token: remains.tokens[0])).result.records
            #expect(records.count == transactions - 1, "\(what)")
        } else {
            #expect(head.sequence >= last.sequence, "\(what): a number would be given twice")
            for token in [remains.tokens[0], last] {
                let error = await #expect(throws: RPCError.self, "\(what)") {
                    try await library.changeBroker.ask(FeedSince(token: token))
                }
                #expect(error?.refusal == .tokenExpired, "\(what)")
            }
            // Who follows is told, and does not silently diverge.
            var feed = library.changes(since: last).makeAsyncIterator()
            guard case .expired = try await feed.next() else {
                Issue.record("\(what): a subscriber was not told")
                return false
            }
        }
        _ = try await library.perform([.createCollection(.init(ref: "a", title: "\(titles.count)"))])
        await library.close()
        #expect(house.stop() == [], "\(what)")
        if let sqlite = TestPlace.program("sqlite3") {
            let run = try RunningProgram.run(sqlite, ["-readonly", copy + "/library.sqlite", "PRAGMA integrity_check"])
            #expect(run.output == "ok\n", "\(what): \(run.errors)")
        }
        return goesOn
    }

    @Test func `F16: a log cut, flipped or gone leaves a whole beginning, and what is missing is told`() async throws {
        var random = SeededRandom(named: "F16")
        let remains = try await Self.remains()
        let log = Array(try Data(contentsOf: URL(filePath: remains.library + "/library.sqlite-wal")))
        #expect(log.count > 32 + Self.transactions * 4120, "the log holds the transactions")
        func write(_ bytes: [UInt8], _ database: String) throws {
            try Data(bytes).write(to: URL(filePath: database + "-wal"))
        }
        let untouched: [(what: String, operate: (String) throws -> Void)] = [
            ("as it was left", { _ in }), ("without -shm", { unlink($0 + "-shm") }),
            (
                "with a -shm of noise",
                {
                    try Data((0..<32_768).map { UInt8(truncatingIfNeeded: $0 &* 37) }).write(
                        to: URL(filePath: $0 + "-shm")
                    )
                }
            ),
            ("bytes after the log's end", { try write(log + [1, 2, 3], $0) }),
        ]
        for (what, operate) in untouched {
            let goesOn = try await Self.check(remains, what, operate)
            #expect(goesOn, "\(what)")
        }
        for (what, operate) in [
            ("without -wal", { unlink($0 + "-wal") }), ("an empty log", { try write([], $0) }),
        ] as [(String, (String) throws -> Void)] {
            let goesOn = try await Self.check(remains, what, operate)
            #expect(!goesOn, "\(what)")
        }
        // A frame has 24 bytes and a page of 4,096 behind a head of 32.
        var cuts = [31, 32, 33, log.count - 1, log.count - 4096, log.count - 4120, log.count - 4121]
        let rounds = TestEnvironment.rounds(3)
        cuts += (0..<rounds).map { _ in Int.random(in: 1..<log.count, using: &random) }
        var (went, new) = (0, 0)
        for cut in cuts {
            let goesOn = try await Self.check(remains, "cut at \(cut) of \(log.count)") {
                try write(Array(log[..<cut]), $0)
            }
            if goesOn { went += 1 } else { new += 1 }
        }
        for _ in 0..<rounds {
            let place = Int.random(in: 0..<log.count, using: &random)
            let bit = Int.random(in: 0..<8, using: &random)
            var bytes = log
            bytes[place] ^= 1 << bit
            let goesOn = try await Self.check(remains, "bit \(bit) of byte \(place) of \(log.count)") {
                try write(bytes, $0)
            }
            if goesOn { went += 1 } else { new += 1 }
        }
        TestPlace.say("a log of \(log.count) bytes, cut or flipped: \(went) histories went on whole, \(new) began anew")
        #expect(new > 0)
    }

    @Test func `F16: one spoiled half of the head's own file is made up for by the other`() async throws {
        let remains = try await Self.remains()
        for slot in [0, 4096] {
            let goesOn = try await Self.check(remains, "head's slot at \(slot)") { database in
                let path = (database as NSString).deletingLastPathComponent + "/head"
                var bytes = try Data(contentsOf: URL(filePath: path))
                bytes[slot + 40] ^= 0xFF
                try bytes.write(to: URL(filePath: path))
            }
            #expect(goesOn, "slot at \(slot)")
        }
    }
}

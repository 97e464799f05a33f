import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of the real executable.
@Suite(.timeLimit(.minutes(2)))
struct CatalogProgramTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("cat") }

    @Test
    func `after kill -9 each acknowledged transaction is stored exactly once, and no other one is stored in part`()
        async throws
    {
        var random = SeededRandom(named: "kill -9")
        var acknowledged: [String: JSON] = [:]
        var pending: [String: [ChangeRequest]] = [:]
        var number = 0
        for _ in 0..<4 {
            let program = try start()
            let client = try Connection(folder)
            // Requests without a response are sent again under their transaction id first.
            for (name, requests) in pending {
                acknowledged[name] = try await client.perform(requests, name)
            }
            pending = [:]
            let killAfter = Int.random(in: 10...60, using: &random)
            var batch: [(String, [ChangeRequest])] = []
            for _ in 0..<80 {
                number += 1
                batch.append(("t\(number)", Self.requests(number)))
            }
            let answers = await withTaskGroup(of: (String, JSON?).self) { group in
                for (name, requests) in batch { group.addTask { (name, try? await client.perform(requests, name)) } }
                var answers: [String: JSON] = [:]
                for await (name, answer) in group {
                    if let answer { answers[name] = answer }
                    if answers.count == killAfter { program.killHard() }
                }
                return answers
            }
            acknowledged.merge(answers) { first, _ in first }
            for (name, requests) in batch where answers[name] == nil { pending[name] = requests }
            program.killHard()
            await client.close()
        }
        let program = try start()
        let client = try Connection(folder)
        for (name, requests) in pending { acknowledged[name] = try await client.perform(requests, name) }
        var albums = FetchDescription(.collections)
        albums.collectionType = "album"
        let page = try await client.call(FetchCollections(fetch: albums, count: 1000))
        #expect(page.count == 2 * number && Set(page.collections.compactMap(\.title)).count == 2 * number)
        for other in 1...number {
            let requests = Self.requests(other)
            #expect(try await client.perform(requests, "t\(other)") == acknowledged["t\(other)"])
        }
        var sequences: [Int64] = []
        var token: ChangeToken?
        repeat {
            let history = try await client.call(ChangesSince(token: token, limit: 1000))
            sequences += try history.records.map { try ChangeRecord(json: $0).sequence }
            token = history.token
            if !history.hasMore { break }
        } while true
        #expect(sequences == Array(1...Int64(number)))
        #expect(Set(acknowledged.values.compactMap { $0["sequence"]?.intValue }).count == number)
        await client.close()
        program.signal(SIGTERM)
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
    }

    @Test func `a log that is lost in a crash is detected, and the library begins a new history`() async throws {
        var program = try start()
        var client = try Connection(folder)
        _ = try await client.perform([.createCollection(.init(title: "A"))], "t")
        await client.close()
        // The log is written into the database.
        program.signal(SIGTERM)
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
        program = try start()
        client = try Connection(folder)
        _ = try await client.perform([.createCollection(.init(title: "B"))], "u")
        let before = try await client.call(CurrentToken()).token
        program.killHard()
        await client.close()
        removeLog()
        program = try start()
        client = try Connection(folder)
        let after = try await client.call(CurrentToken()).token
        #expect(after.library != before.library && after.sequence == before.sequence)
        await client.close()
        program.killHard()
    }

    @Test func `if a lost log contained the whole library, the catalog does not begin a new one`() async throws {
        let program = try start()
        let client = try Connection(folder)
        _ = try await client.perform([.createCollection(.init(title: "A"))], "t")
        program.killHard()
        await client.close()
        removeLog()
        let error = #expect(throws: (any Error).self) { try start() }
        #expect("\(String(describing: error))".contains("the database is empty"))
        #expect(FileManager.default.fileExists(atPath: folder.file("library/head")))
    }

    private func removeLog() {
        for file in ["library.sqlite-wal", "library.sqlite-shm"] { unlink(folder.file("library/\(file)")) }
    }

    @Test func `a stop ends open streams with their token and exits with status 0`() async throws {
        let program = try start()
        let client = try Connection(folder)
        let result = try await client.perform(Self.requests(1), "t")
        let start = ChangeToken(library: try await client.call(CurrentToken()).token.library, sequence: 0)
        let stream = client.client.stream(
            ChangesFollow.method,
            ChangesFollow(token: start).json,
            deadline: nil,
            credit: 1 << 20
        )
        var end: FollowEnd?
        do {
            for try await element in stream {
                switch element {
                case .notification: program.signal(SIGTERM)
                case .reply(let reply): end = try FollowEnd(json: reply.result)
                }
            }
            #expect(end?.token.description == result["token"]?.stringValue)
        } catch let error as RPCError {
            // The connection may close before the last reply arrives; the reader has the token anyway.
            #expect(error.name == "connection_lost")
        }
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
        await client.close()
    }

    @Test func `the flag --check prints the settings and rejects invalid ones`() throws {
        let check = try RunningProgram.run(
            "catalog",
            ["--library", "/tmp/x", "--history-days", "7", "--import-root", "/tmp", "--check"],
            environment: ["SAFELIGHT_READERS": "3"]
        )
        let json = try JSON(parsing: check.output)
        let limits = try #require(json["limits"], "\(check.errors)")
        #expect(check.status == 0 && json["library"] == "/tmp/x")
        #expect(limits["historyDays"] == 7 && limits["readers"] == 3 && limits["importRoots"] == ["/tmp"])
        for (arguments, environment) in [
            (["--library", "relative"], [:]), (["--history-days", "0"], [:]), ([], ["SAFELIGHT_READERS": "many"]),
            ([], ["SAFELIGHT_LISTEN": "127.0.0.1:70000"]), ([], ["SAFELIGHT_STATE": "relative"]),
            ([], ["SAFELIGHT_LISTEN": "127.0.0.1", "SAFELIGHT_KEYS": "/nowhere"]),
        ] {
            let wrong = try RunningProgram.run("catalog", arguments + ["--check"], environment: environment)
            #expect(wrong.status != 0 && !wrong.errors.isEmpty)
        }
        let worker = try RunningProgram.run("catalog", ["worker"])
        #expect(worker.status != 0)
    }

    // MARK: Helpers

    private static func requests(_ number: Int) -> [ChangeRequest] {
        ["a", "b"].map { (name: String) -> ChangeRequest in
            .createCollection(.init(ref: name, title: "\(number) \(name)"))
        }
    }

    private func start() throws -> RunningProgram {
        let program = try RunningProgram(
            "catalog",
            ["--library", folder.file("library"), "--run", folder.file("run"), "--ready-fd", "1", "--workers", "1"]
        )
        guard program.waitForOutput("ready") else {
            throw ProgramFailure(description: program.errorText)
        }
        return program
    }

    private struct ProgramFailure: Error, CustomStringConvertible { let description: String }

    /// A client of the program.
    private struct Connection: Sendable {
        let thread: PollThread
        let client: RequestClient

        init(_ folder: TemporaryFolder) throws {
            thread = try PollThread(name: "client")
            client = try RequestClient(
                address: try EndpointAddress("ipc://\(folder.file("run/catalog.sock"))"),
                thread: thread,
                logger: CatalogFixture.logger
            )
        }

        func call<R: Request>(_ request: R) async throws -> R.Result {
            try R.Result(json: try await client.call(R.method, request.json).result)
        }

        func perform(_ requests: [ChangeRequest], _ transaction: String) async throws -> JSON {
            try await client.call(
                PerformChanges.method,
                PerformChanges(requests: requests, client: "test", transaction: transaction).json
            ).result
        }

        func close() async { await thread.shutdown() }
    }
}

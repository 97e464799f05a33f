import ArgumentParser
import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import CommandLine

/// Changes whose reply is lost: they are sent again, and performed once. After an error in the middle of the work, the
/// status is a partial success.
@Suite(.timeLimit(.minutes(1)))
struct RepeatedChangeTests {
    private static let asset = ScriptedService.id("a", 1)

    /// Runs a command while a service answers at an address.
    private func run(
        _ words: [String],
        _ address: @Sendable (ServiceEndpoints) -> EndpointAddress,
        _ service: ScriptedService
    ) async throws {
        try await ClientFixture.with { fixture in
            let library = fixture.library
            try await fixture.serving(address(fixture.endpoints), service) {
                let command = try #require(try SafelightCommand.parseAsRoot(words) as? any LibraryCommand)
                try await command.run(in: library, output: Output(json: true))
            }
        }
    }

    /// Returns an editor that answers the first edits with errors, and records the transaction of each request.
    private func editor(failing failures: [RPCError], _ transactions: AwaitableValue<[String]>) -> ScriptedService {
        ScriptedService { request, _ throws(RPCError) in
            guard request.method != Health.method else { return ScriptedService.health }
            let number = transactions.withLock { list in
                list.append(request.params["transaction"]?.stringValue ?? "none")
                return list.count
            }
            guard number > failures.count else { throw failures[number - 1] }
            return Reply(EditOutcome(asset: Self.asset, token: ScriptedService.token, isChanged: true).json)
        }
    }

    private static let commands = [
        ["edit", asset.text, "--append", "--exposure", "0.2"], ["revert", asset.text],
        ["history", asset.text, "--undo-to", "0"],
    ]

    @Test(arguments: commands)
    func `an edit whose reply is lost is sent again with its transaction`(words: [String]) async throws {
        let transactions = AwaitableValue<[String]>([])
        let lost = ErrorCode.connectionLost.error("the editor was restarted")
        let stopping = ErrorCode.userCancelled.error("the service is stopping", ["isStopping": true])
        try await run(words, { $0.editors[0] }, editor(failing: [lost, stopping], transactions))
        #expect(transactions.current.count == 3 && Set(transactions.current).count == 1)
        #expect(transactions.current.first?.count == 32)
    }

    @Test(arguments: commands)
    func `an edit that is refused is sent once`(words: [String]) async throws {
        let transactions = AwaitableValue<[String]>([])
        let refused = ErrorCode.conflict.error("it was changed meanwhile")
        await #expect(throws: (any Error).self) {
            try await run(words, { $0.editors[0] }, editor(failing: [refused], transactions))
        }
        #expect(transactions.current.count == 1)
    }

    @Test func `warm opens new caches if the thumbnailer has lost them`() async throws {
        let methods = AwaitableValue<[String]>([])
        let thumbnailer = ScriptedService { request, _ throws(RPCError) in
            guard request.method != Health.method else { return ScriptedService.health }
            let opened = methods.withLock { list in
                list.append(request.method)
                return list.count { $0 == OpenCache.method }
            }
            switch request.method {
            case OpenCache.method: return Reply(OpenCache.Result(cache: "c\(opened)", limit: 1000).json)
            case CacheStatus.method where opened == 1: throw ErrorCode.handleExpired.error("there is no such cache")
            case CacheStatus.method:
                var status = CacheStatus.Result()
                status.prepared = 2
                return Reply(status.json)
            default: return Reply(EmptyResult().json)
            }
        }
        let assets = (1...2).map { Asset(id: ScriptedService.id("a", $0)) }
        try await ClientFixture.with { fixture in
            let library = fixture.library
            try await fixture.serving(fixture.endpoints.thumbnailers[0], thumbnailer) {
                try await fixture.serving(fixture.endpoints.catalog, LargeAssetCatalog(assets)) {
                    let command = try #require(try SafelightCommand.parseAsRoot(["warm"]) as? WarmCommand)
                    try await command.run(in: library, output: Output(json: true))
                }
            }
        }
        #expect(methods.current.count { $0 == OpenCache.method } == 2)
        #expect(methods.current.last == CloseCache.method)
    }

    @Test func `a change fails after the restart time, not after the deadline, if the service does not come back`()
        async throws
    {
        try await ClientFixture.with { fixture in
            let editor = fixture.library.editor
            let request = RevertEdit(asset: Self.asset, transaction: "t")
            let error = await #expect(throws: RPCError.self) {
                _ = try await editor.repeating(
                    within: .seconds(600),
                    restartTime: .milliseconds(200)
                ) { remaining throws(RPCError) in
                    try await editor.ask(request, deadline: remaining ?? .seconds(600)).result
                }
            }
            #expect(error?.meansNoResponse == true)
        }
    }

    @Test func `an edit that ends after some of its assets is a partial success`() async throws {
        let editor = ScriptedService { request, context throws(RPCError) in
            guard request.method != Health.method else { return ScriptedService.health }
            try await context.notifier.notify("edits.progress", ["done": 57, "failed": 2, "total": 100])
            throw ErrorCode.internalError.error("out of order")
        }
        let ids = (1...100).map { ScriptedService.id("a", $0).text }
        let failure = await #expect(throws: CommandFailure.self) {
            try await run(["edit"] + ids + ["--exposure", "0.2"], { $0.editors[0] }, editor)
        }
        #expect(
            failure?.status == .partly && failure?.message.contains("57 of 100 assets") == true,
            "\(failure as Any)"
        )
    }

    @Test func `an album that was created with only some of its assets is a partial success`() async throws {
        let performed = AwaitableValue(0)
        let catalog = ScriptedService { request, _ throws(RPCError) in
            guard request.method == PerformChanges.method else {
                throw ErrorCode.methodNotFound.error("the catalog of this test has no \(request.method)")
            }
            let number = performed.withLock { count in
                count += 1
                return count
            }
            guard number == 1 else { throw ErrorCode.identifierNotFound.error("there is no such asset") }
            let album = ScriptedService.id("b", 1).text
            let result = PerformChanges.Result(
                token: ScriptedService.token,
                isChanged: true,
                placeholders: ["album": .string(album)]
            )
            return Reply(result.json)
        }
        let ids = (1...1001).map { ScriptedService.id("a", $0).text }
        let failure = await #expect(throws: CommandFailure.self) {
            try await run(["album", "create", "Big", "--another"] + ids, { $0.catalog }, catalog)
        }
        #expect(failure?.status == .partly && failure?.name == "identifier_not_found")
        #expect(failure?.message.contains("999 of 1001 assets") == true, "\(failure as Any)")
    }
}

import Basics
import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Tests of the scripts in `compose/examples`, run as users run them.
@Suite(.timeLimit(.minutes(5)), .serialized)
struct ExampleTests {
    private func script(_ name: String) -> String { TestPaths.package + "/compose/examples/" + name }

    /// Returns the number of lines of code of a script, without blank lines and comments.
    private func lines(_ name: String) throws -> Int {
        try String(contentsOfFile: script(name), encoding: .utf8).split(separator: "\n")
            .count { !$0.drop { $0 == " " }.hasPrefix("#") }
    }

    @Test func `each example script is short`() throws {
        #expect(try lines("newest_five.py") < 15)
        #expect(try lines("follow_changes.py") < 30)
    }

    @Test func `follow_changes prints every change once across restarts of broker and catalog`() async throws {
        let python = try Needed.python()
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit(times: 5)
            let program = try RunningProgram(
                python,
                [script("follow_changes.py")],
                environment: [
                    "SAFELIGHT_FEED": fixture.endpoints.feed.description,
                    "SAFELIGHT_BROKER": fixture.endpoints.changeBroker.description,
                ]
            )
            @Sendable func printed() -> [Int64] {
                program.outputText.split(separator: "\n").compactMap {
                    $0.split(separator: " ").first.flatMap { Int64($0) }
                }
            }
            /// Waits until a condition is true for what the program has printed.
            @Sendable func until(_ condition: @escaping @Sendable () -> Bool) async {
                await withCheckedContinuation { continuation in
                    Thread.detachNewThread {
                        _ = program.wait(seconds: 60) { _ in condition() }
                        continuation.resume()
                    }
                }
            }
            for _ in 0..<2 {
                try await fixture.withCatalog {
                    for _ in 0..<2 {
                        try await fixture.withBroker { _ in
                            try await fixture.waitUntilCaughtUp()
                            // The next head announces the change if the live message was lost.
                            let count = printed().count
                            await fixture.catalog.commit()
                            await until { printed().count > count }
                            await fixture.catalog.commit(times: 30)
                            try await fixture.waitUntilCaughtUp()
                        }
                        await fixture.catalog.commit(times: 30)
                    }
                }
            }
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    let last = await fixture.catalog.head
                    await until { printed().last == last }
                }
            }
            let sequences = printed()
            #expect(sequences == Array(1...(await fixture.catalog.head)), "\(program.errorText)")
            program.killHard()
        }
    }

    /// Serves five assets, and an image of each.
    private struct FiveAssets: RequestHandler {
        @concurrent
        func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
            switch request.method {
            case FetchAssets.method:
                let fetch = try FetchAssets(params: request.params).fetch
                #expect(fetch.limit == 5)
                #expect(fetch.sort == [SortDescription(key: "creationDate", ascending: false)])
                let assets = (1...5).map { Asset(id: assetID($0)) }
                let token = ChangeToken(library: testLibrary, sequence: 1)
                return Reply(FetchAssets.Result(token: token, count: 5, assets: assets).json)
            case ImageRequest.method:
                let image = try ImageRequest(params: request.params)
                #expect(image.targetSize == .size(width: 512, height: 512))
                let result = ImageRequest.Result(
                    asset: image.asset,
                    contentRevision: Revision(1),
                    sequence: 1,
                    mimeType: "image/jpeg",
                    pixelWidth: 512,
                    pixelHeight: 512
                )
                return Reply(result.json, attachments: [Bytes(image.asset.text.utf8)])
            default: throw ErrorCode.methodNotFound.error("not here")
            }
        }
    }

    @Test func `newest_five saves five images`() async throws {
        let python = try Needed.python()
        try await BrokerFixture.with { fixture in
            try await fixture.fixture.serving(fixture.endpoints.catalog, FiveAssets()) {
                try await fixture.fixture.serving(fixture.endpoints.thumbnailers[0], FiveAssets()) {
                    let program = try RunningProgram(
                        "/bin/sh",
                        ["-c", "cd \(fixture.folder.path) && exec \(python) \(script("newest_five.py"))"],
                        environment: [
                            "SAFELIGHT_CATALOG": fixture.endpoints.catalog.description,
                            "SAFELIGHT_THUMBNAILER": fixture.endpoints.thumbnailers[0].description,
                        ]
                    )
                    while program.isRunning { try await Task.sleep(for: .milliseconds(20)) }
                    #expect(program.wait() == 0, "\(program.errorText)")
                    for number in 1...5 {
                        let id = assetID(UInt64(number))
                        let image = FileManager.default.contents(atPath: fixture.folder.file("\(id).jpg"))
                        #expect(image == Data(id.text.utf8))
                    }
                }
            }
        }
    }
}

import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Two editors that apply the published edits of one library.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct SeveralEditorsTests {
    private let services: SafelightFixture
    private let other: TemporaryFolder

    init() throws {
        services = try SafelightFixture("editors")
        try services.start([.catalog, .changeBroker, .editor])
        other = try TemporaryFolder("other")
    }

    private var otherAddresses: [String: String] {
        [
            "SAFELIGHT_EDITOR": "ipc://\(other.file("editor.sock"))",
            "SAFELIGHT_EDITS": "ipc://\(other.file("edits.sock"))",
        ]
    }

    private var firstEdits: String { "ipc://\(services.folder.file("run"))/edits.sock" }

    private func startOther() throws -> RunningProgram {
        let program = try RunningProgram(
            "editor",
            ["--ready-fd", "1"],
            environment: services.environment.merging(otherAddresses) { $1 }
        )
        guard program.waitForOutput("ready") else { throw FixtureError(description: program.errorText) }
        return program
    }

    /// Returns clients of the first editor, of the other one, and of both.
    private func makeClients() throws -> (first: PhotoLibrary, other: PhotoLibrary, both: PhotoLibrary) {
        let addresses = otherAddresses.mapValues { address in
            [address, firstEdits].joined(separator: ",")
        }
        func client(_ variables: [String: String]) throws -> PhotoLibrary {
            try NetworkFixture.library(variables: services.environment.merging(variables) { $1 })
        }
        let both = addresses.filter { $0.key == "SAFELIGHT_EDITS" }
        return (try client([:]), try client(otherAddresses), try client(both))
    }

    private func importImages(_ count: Int, _ library: PhotoLibrary) async throws -> [ObjectID] {
        let result = try await library.perform(
            (0..<count).map { .createAsset(.init(ref: "\($0)", resources: [NewResource(source: .attachment($0))])) },
            attachments: (0..<count).map { TestImages.jpeg(width: 240, height: 160, seed: UInt64($0)) }
        )
        return try (0..<count).map { try #require(result.id("\($0)")) }
    }

    /// Publishes chains of edits, one for each asset, each of which appends to the one before.
    ///
    /// - Parameters:
    ///   - publishers: publish the edits of a chain in turn
    ///   - applied: called after each edit that was applied
    private func publish(
        _ assets: [ObjectID],
        _ length: Int,
        _ publishers: [EditPublisher],
        applied: @escaping @Sendable (Int) async throws -> Void = { _ in }
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let count = AwaitableValue(0)
            for publisher in publishers {
                group.addTask { try await publisher.run() }
                group.addTask {
                    for await status in publisher.updates where status.edit.state != .accepted {
                        #expect(status.edit.state == .applied, "\(status.edit)")
                        try await applied(
                            count.withLock {
                                $0 += 1; return $0
                            }
                        )
                    }
                }
            }
            for step in 0..<length {
                for (number, asset) in assets.enumerated() {
                    let edit = PublishEdit(
                        id: "\(number)-\(step)",
                        asset: asset,
                        adjustments: AdjustmentList(operations: [.exposure(Double(step + 1) / 100)]),
                        after: step > 0 ? "\(number)-\(step - 1)" : nil,
                        mode: .append
                    )
                    try await publishers[(number + step) % publishers.count].publish(edit)
                }
            }
            for publisher in publishers { await publisher.finish() }
            try await group.waitForAll()
        }
    }

    /// Checks that each edit was applied once, after its predecessor.
    private func check(_ assets: [ObjectID], _ length: Int, since token: ChangeToken, _ library: PhotoLibrary)
        async throws
    {
        let records = try await library.history(after: token)
        let applied = records.flatMap(\.edits).filter { $0.state == .applied }.map(\.id)
        #expect(applied.count == assets.count * length && Set(applied).count == applied.count, "\(applied.count)")
        for (number, asset) in assets.enumerated() {
            let ids = applied.filter { $0.hasPrefix("\(number)-") }
            #expect(ids == (0..<length).map { "\(number)-\($0)" }, "\(ids)")
            let history = try await library.editor.ask(EditHistory(asset: asset)).result
            let list = try AdjustmentList(json: try #require(history.steps.last?.adjustments))
            let values = list.operations.map { $0.number("value") }
            #expect(values == (0..<length).map { Double($0 + 1) / 100 }, "\(values)")
        }
    }

    @Test func `chains whose edits alternate between two editors are applied once, in order`() async throws {
        let program = try startOther()
        let clients = try makeClients()
        let assets = try await importImages(10, clients.first)
        let beginning = try await clients.first.currentToken().token
        let publishers = [try EditPublisher(library: clients.first), try EditPublisher(library: clients.other)]
        try await publish(assets, 8, publishers)
        try await check(assets, 8, since: beginning, clients.first)
        for library in [clients.first, clients.other, clients.both] { await library.close() }
        program.signal(SIGTERM)
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
        #expect(services.stop() == [])
    }

    @Test func `the Python package publishes to several editors, and continues when one is killed`() async throws {
        let program = try startOther()
        let clients = try makeClients()
        let assets = try await importImages(16, clients.first)
        let beginning = try await clients.first.currentToken().token
        let script = """
            import os, signal, sys, safelight
            from safelight import editing
            library = safelight.Library(client="several", wait=60)
            edits = [(asset, editing.adjustments(exposure=(step + 1) / 10)) for step in range(2) for asset in sys.argv[2:]]
            for number, status in enumerate(library.publish(edits)):
                assert status.state == "applied", status
                if number == 8:
                    os.kill(int(sys.argv[1]), signal.SIGKILL)
            print("all applied")
            """
        let edits = ["SAFELIGHT_EDITS": "\(otherAddresses["SAFELIGHT_EDITS"] ?? ""),\(firstEdits)"]
        let run = try RunningProgram.run(
            try Needed.python(),
            ["-B", "-c", script, "\(program.processIdentifier)"] + assets.map(\.text),
            environment: services.environment.merging(edits) { $1 }.merging(PythonPackage.environment) { $1 },
            seconds: 90
        )
        #expect(run.output == "all applied\n", "\(run.errors)")
        let applied = try await clients.first.history(after: beginning).flatMap(\.edits).filter { $0.state == .applied }
        #expect(applied.count == 32 && Set(applied.map(\.id)).count == 32)
        for library in [clients.first, clients.other, clients.both] { await library.close() }
        program.killHard()
        #expect(services.stop() == [])
    }

    @Test(arguments: ["editor", "editor that starts again", "catalog"])
    func `all edits are applied once, in order, while a service is killed`(victim: String) async throws {
        let program = AwaitableValue(try startOther())
        let clients = try makeClients()
        let assets = try await importImages(12, clients.first)
        let beginning = try await clients.first.currentToken().token
        let publisher = try EditPublisher(library: clients.both, window: 200)
        let (services, start) = (services, startOther)
        try await publish(assets, 8, [publisher]) { count in
            guard count == 20 else { return }
            if victim == "catalog" { return try services.restart(.catalog) }
            program.withLock { $0.killHard() }
            if victim != "editor" {
                let again = try start()
                program.withLock { $0 = again }
            }
        }
        try await check(assets, 8, since: beginning, clients.first)
        // No edit waits for an editor that does not return.
        let counts = try await clients.first.catalog.metrics()["library"]
        #expect(counts?["editsAccepted"] == 0, "\(counts ?? .null)")
        for library in [clients.first, clients.other, clients.both] { await library.close() }
        program.withLock { $0.killHard() }
        #expect(services.stop() == [])
    }
}

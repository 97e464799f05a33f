import ArgumentParser
import Contracts
import Foundation
import Hosting
import Logging
import Messaging
import PhotoClient
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Editor
@testable import Thumbnailer

/// Tests with real workers run one after the other: they would only take the processors from each other.
@Suite(.serialized)
enum StudioTests {}

/// An editor with real workers, beside a scripted catalog, for one test; on request with a thumbnailer.
struct Studio: Sendable {
    let resources: ResourceStore
    let catalog: ScriptedCatalog
    let editor: EditorService
    /// Asks the editor.
    let client: ServiceClient
    /// Asks the thumbnailer, where there is one.
    let pictures: ServiceClient

    static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    static func open(
        withThumbnailer: Bool = false,
        configure: (inout EditorConfiguration) -> Void = { _ in },
        _ body: @Sendable (Studio) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder("studio")
        try FileManager.default.createDirectory(
            atPath: folder.file("library"),
            withIntermediateDirectories: true
        )
        let resources = try ResourceStore(root: folder.file("library/resources"))
        let catalog = ScriptedCatalog { bytes, type in
            let stored = try resources.put(bytes: bytes)
            return AssetResource(type: type, digest: stored.digest.text, size: stored.size, contentType: "public.jpeg")
        }
        let endpoints = try EndpointOptions.parse(["--run", folder.file("run")]).resolve { _ in nil }
        var configuration = EditorConfiguration(
            endpoints: endpoints,
            library: folder.file("library"),
            workers: 2,
            executable: TestPlace.executables + "/editor"
        )
        configure(&configuration)
        let editor = try await EditorService(configuration, logger: logger)
        let thumbnailer = withThumbnailer ? try await Self.thumbnailer(folder, endpoints) : nil
        let thread = try PollThread(name: "test")
        let server = try RequestServer(
            address: endpoints[.catalog],
            thread: thread,
            logger: logger,
            handler: catalog
        )
        let studio = Studio(
            resources: resources,
            catalog: catalog,
            editor: editor,
            client: try ServiceClient(address: endpoints[.editor], thread: thread, logger: logger),
            pictures: try ServiceClient(address: endpoints[.thumbnailer], thread: thread, logger: logger)
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try? await editor.serve() }
            if let thumbnailer { group.addTask { try? await thumbnailer.serve() } }
            group.addTask { await server.run() }
            defer { group.cancelAll() }
            try await body(studio)
        }
        await thread.shutdown()
        withExtendedLifetime(folder) {}
    }

    private static func thumbnailer(
        _ folder: TemporaryFolder,
        _ endpoints: Endpoints
    ) async throws -> ThumbnailerService {
        try await ThumbnailerService(
            ThumbnailerConfiguration(
                endpoints: endpoints,
                library: folder.file("library"),
                cache: folder.file("cache"),
                workers: 1,
                executable: TestPlace.executables + "/thumbnailer"
            ),
            logger: logger
        )
    }

    /// The outcome of a request to the editor.
    func ask<R: Request>(_ request: R) async throws(RPCError) -> R.Result {
        try await client.ask(request).result
    }

    /// The refusal of a request; nil where it succeeds.
    func refusal<R: Request>(_ request: R) async -> RPCError? {
        await client.refusal(of: request)
    }

    /// The bytes of a resource of an asset.
    func bytes(_ id: ObjectID, _ type: ResourceType) throws -> Bytes {
        let resource = try #require(catalog.asset(id)?.resource(type))
        let digest = try #require(ResourceDigest(resource.digest))
        return try resources.readAll(digest, limit: 1 << 30)
    }

    /// Transactions that were not mere questions.
    var commits: [PerformChanges] { catalog.performed.filter { !$0.recall } }
}

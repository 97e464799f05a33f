import Basics
import JSONValue
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

/// Parent of the suites with real workers. They run one after the other, because they would compete for the processors.
@Suite(.serialized)
enum EditorWorkerTests {}

/// An editor with real workers and a scripted catalog, for one test, optionally with a thumbnailer.
struct EditorFixture: Sendable {
    let resources: ResourceStore
    let catalog: ScriptedCatalog
    let editor: EditorService
    /// A client of the editor.
    let client: ServiceClient
    /// A client of the thumbnailer, if there is one.
    let images: ServiceClient

    static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// Starts the services, runs the body and stops them.
    ///
    /// - Parameter handler: responds to the requests to the catalog in place of the scripted catalog
    static func open(
        withThumbnailer: Bool = false,
        handler: (any RequestHandler)? = nil,
        configure: (inout EditorConfiguration) -> Void = { _ in },
        _ body: @Sendable (EditorFixture) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder("editor")
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
            executable: TestPaths.executables + "/editor"
        )
        configure(&configuration)
        let editor = try await EditorService(configuration, logger: logger)
        let thumbnailer = withThumbnailer ? try await Self.thumbnailer(folder, endpoints) : nil
        let thread = try PollThread(name: "test")
        let server = try RequestServer(
            address: endpoints[.catalog],
            thread: thread,
            logger: logger,
            handler: handler ?? catalog
        )
        let fixture = EditorFixture(
            resources: resources,
            catalog: catalog,
            editor: editor,
            client: try ServiceClient(address: endpoints[.editor], thread: thread, logger: logger),
            images: try ServiceClient(address: endpoints[.thumbnailer], thread: thread, logger: logger)
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try? await editor.serve() }
            if let thumbnailer { group.addTask { try? await thumbnailer.serve() } }
            group.addTask { await server.run() }
            defer { group.cancelAll() }
            try await body(fixture)
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
                executable: TestPaths.executables + "/thumbnailer"
            ),
            logger: logger
        )
    }

    /// Sends a request to the editor and returns its result.
    func ask<R: Request>(_ request: R) async throws(RPCError) -> R.Result {
        try await client.ask(request).result
    }

    /// Returns the error of a request; nil if it succeeds.
    func rpcError<R: Request>(_ request: R) async -> RPCError? {
        await client.rpcError(of: request)
    }

    /// Returns the bytes of a resource of an asset.
    func bytes(_ id: ObjectID, _ type: ResourceType) throws -> Bytes {
        let resource = try #require(catalog.asset(id)?.resource(type))
        let digest = try #require(ResourceDigest(resource.digest))
        return try resources.readAll(digest, limit: 1 << 30)
    }

    /// The performed transactions that were not recalls.
    var commits: [PerformChanges] { catalog.performed.filter { !$0.recalls } }
}

import Basics
import ArgumentParser
import Contracts
import Foundation
import Hosting
import ImageFormats
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Thumbnailer

/// Parent of the suites with real workers. They run one after the other, because they would compete for the processors.
@Suite(.serialized)
enum ThumbnailerWorkerTests {}

/// A thumbnailer with real workers and a scripted catalog, for one test.
struct ThumbnailerFixture: Sendable {
    let folder: TemporaryFolder
    let resources: ResourceStore
    let catalog: ScriptedCatalog
    let service: ThumbnailerService
    /// A client of the thumbnailer.
    let client: ServiceClient
    let thread: PollThread

    static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// Starts the services, runs the body and stops them.
    ///
    /// - Parameter folder: the folder of an earlier fixture, to test a restart
    static func open(
        in folder: TemporaryFolder? = nil,
        configure: (inout ThumbnailerConfiguration) -> Void = { _ in },
        _ body: @Sendable (ThumbnailerFixture) async throws -> Void
    ) async throws {
        let folder = try folder ?? TemporaryFolder("dark")
        try FileManager.default.createDirectory(
            atPath: folder.file("library"),
            withIntermediateDirectories: true
        )
        let resources = try ResourceStore(root: folder.file("library/resources"))
        let catalog = ScriptedCatalog { bytes, type in
            let stored = try resources.put(bytes: bytes)
            let header = try? ImageHeader.read(bytes)
            return AssetResource(
                type: type,
                digest: stored.digest.text,
                size: stored.size,
                contentType: header?.kind.contentType ?? "public.jpeg",
                pixelWidth: header?.pixelWidth ?? 0,
                pixelHeight: header?.pixelHeight ?? 0
            )
        }
        let endpoints = try EndpointOptions.parse(["--run", folder.file("run")]).resolve { _ in nil }
        var configuration = ThumbnailerConfiguration(
            endpoints: endpoints,
            library: folder.file("library"),
            cache: folder.file("cache"),
            workers: 2,
            executable: TestPaths.executables + "/thumbnailer"
        )
        configure(&configuration)
        let thread = try PollThread(name: "test")
        let service = try await ThumbnailerService(configuration, logger: logger)
        let server = try RequestServer(
            address: endpoints[.catalog],
            thread: thread,
            logger: logger,
            handler: catalog
        )
        let fixture = ThumbnailerFixture(
            folder: folder,
            resources: resources,
            catalog: catalog,
            service: service,
            client: try ServiceClient(address: service.address, thread: thread, logger: logger),
            thread: thread
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try? await service.serve() }
            group.addTask { await server.run() }
            do {
                try await body(fixture)
            } catch {
                group.cancelAll()
                throw error
            }
            group.cancelAll()
        }
        await thread.shutdown()
    }

    /// Requests one image. Returns its properties and bytes.
    func image(_ request: ImageRequest) async throws(RPCError) -> (result: ImageRequest.Result, bytes: Bytes) {
        let response = try await client.ask(request)
        return (response.result, response.attachments.first ?? [])
    }

    /// Returns all images sent for a request: the degraded ones and the final one.
    func messages(_ request: ImageRequest, deadline: Duration = .seconds(60)) async throws(RPCError) -> [ImageMessage] {
        var messages: [ImageMessage] = []
        for try await event in client.stream(request, credit: 32 << 20, deadline: deadline) {
            switch event {
            case .notification(ImageDelivery.degraded, let params, let attachments):
                guard let result = try? ImageRequest.Result(json: params) else {
                    throw ErrorCode.internalError.error("unreadable: \(params.text)")
                }
                messages.append(ImageMessage(result: result, bytes: attachments.flatMap { $0 }))
            case .notification(ImageDelivery.chunk, _, let attachments):
                if messages.last?.result != nil || messages.isEmpty { messages.append(ImageMessage(bytes: [])) }
                messages[messages.count - 1].bytes += attachments.flatMap { $0 }
            case .response(let response):
                if messages.last?.result != nil || messages.isEmpty { messages.append(ImageMessage(bytes: [])) }
                messages[messages.count - 1].result = response.result
                messages[messages.count - 1].bytes += response.attachments.flatMap { $0 }
            case .notification(let method, _, _):
                throw ErrorCode.internalError.error("unexpected \(method)")
            }
        }
        return messages
    }

    /// Returns the error of a request; nil if it succeeds.
    func rpcError<R: Request>(_ request: R) async -> RPCError? {
        await client.rpcError(of: request)
    }

    var renders: Int64 { service.metrics.renders.total }
}

/// One image sent for a request.
struct ImageMessage: Sendable {
    /// Nil only while its chunks are received.
    var result: ImageRequest.Result?
    var bytes: Bytes

    /// D for a degraded image, F for the final one.
    var letter: String { result?.isDegraded == true ? "D" : "F" }
}

extension RenditionPlan {
    init(_ request: ImageRequest, of asset: Asset) throws(RPCError) {
        try self.init(request, of: AssetSummary(asset))
    }
}

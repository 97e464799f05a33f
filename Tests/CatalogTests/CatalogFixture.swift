import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import ServiceLifecycle
import TestSupport
import Testing

@testable import Catalog

/// The complete service in this process, with its own folder, real workers and a real client.
final class CatalogFixture: Sendable {
    let service: CatalogService
    let client: RequestClient
    private let thread: PollThread
    private let group: ServiceGroup
    private let serviceTask: Task<Void, any Error>

    static var logger: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }

    init(
        _ folder: TemporaryFolder,
        environment: CatalogEnvironment = CatalogEnvironment(),
        _ change: (inout CatalogConfiguration) -> Void = { _ in }
    ) async throws {
        var configuration = CatalogConfiguration(
            library: folder.file("library"),
            address: try EndpointAddress("ipc://\(folder.file("catalog.sock"))")
        )
        configuration.server = try TestStore.address(library: configuration.library)
        configuration.workers = 1
        configuration.workerExecutable = TestPaths.executables + "/catalog"
        change(&configuration)
        service = try await CatalogService(configuration, environment: environment, logger: Self.logger)
        thread = try PollThread(name: "client")
        client = try RequestClient(address: service.address, thread: thread, logger: Self.logger)
        group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: service.components.map { .init(service: $0) },
                logger: Self.logger
            )
        )
        serviceTask = Task { [group] in try await group.run() }
    }

    func stop() async throws {
        await thread.shutdown()
        await group.triggerGracefulShutdown()
        try await serviceTask.value
    }

    /// Waits until the catalog has ended without ``stop()``, which throws its error afterwards.
    func end() async { _ = try? await serviceTask.value }

    /// Runs a body against a catalog and stops the catalog afterwards.
    static func with<Value>(
        _ folder: TemporaryFolder,
        environment: CatalogEnvironment = CatalogEnvironment(),
        _ change: (inout CatalogConfiguration) -> Void = { _ in },
        _ body: (CatalogFixture) async throws -> Value
    ) async throws -> Value {
        let catalog = try await CatalogFixture(folder, environment: environment, change)
        do {
            let value = try await body(catalog)
            try await catalog.stop()
            return value
        } catch {
            try? await catalog.stop()
            throw error
        }
    }

    /// Opens another connection to the catalog.
    func connect() throws -> RequestClient {
        try RequestClient(address: service.address, thread: thread, logger: Self.logger)
    }

    // MARK: Calls

    func call<R: Request>(_ request: R, attachments: [Bytes] = []) async throws -> R.Result {
        try R.Result(json: try await client.call(R.method, request.json, attachments: attachments).result)
    }

    @discardableResult
    func perform(
        _ requests: [ChangeRequest],
        transaction: String? = nil,
        client: String = "test",
        attachments: [Bytes] = []
    ) async throws -> PerformChanges.Result {
        try await call(
            PerformChanges(requests: requests, client: client, transaction: transaction),
            attachments: attachments
        )
    }

    /// Imports photos and returns their identifiers.
    func importImages(_ images: [Bytes], set: AssetPatch = AssetPatch()) async throws -> [ObjectID] {
        let requests = images.indices.map { index in
            ChangeRequest.createAsset(
                .init(ref: "p\(index)", resources: [NewResource(source: .attachment(index))], set: set)
            )
        }
        let result = try await perform(requests, attachments: images)
        return try images.indices.map { try #require(result.id("p\($0)")) }
    }

    func assets(_ fetch: FetchDescription = FetchDescription(.assets)) async throws -> [Asset] {
        try await call(FetchAssets(fetch: fetch, count: 1000)).assets
    }

    func asset(_ id: ObjectID) async throws -> Asset {
        var fetch = FetchDescription(.assets)
        fetch.ids = [id]
        return try #require(try await assets(fetch).first)
    }

    func collections() async throws -> [AssetCollection] {
        var fetch = FetchDescription(.collections)
        fetch.collectionType = CollectionType.album.rawValue
        return try await call(FetchCollections(fetch: fetch, count: 1000)).collections
    }

    /// Returns the whole history from the oldest token.
    func history() async throws -> [ChangeRecord] {
        var records: [ChangeRecord] = []
        var token: ChangeToken?
        while true {
            let page = try await call(ChangesSince(token: token, limit: 1000))
            records += try page.records.map { try ChangeRecord(json: $0) }
            token = page.token
            guard page.hasMore else { return records }
        }
    }
}

/// Returns the wire error that a body throws; nil if it throws none.
func rpcError(_ body: () async throws -> some Any) async -> RPCError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error is any RefusedRequest ? CatalogErrorMapping.rpcError(error) : error as? RPCError
    }
}

/// Returns a photo that is different for each seed.
func image(_ seed: UInt64, date: String? = nil) -> Bytes {
    TestImages.jpeg(width: 32, height: 24, date: date, seed: seed)
}

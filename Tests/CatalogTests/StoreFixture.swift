import Foundation
import JSONValue
import Logging
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

/// A store in its own folder, without a service.
final class StoreFixture: Sendable {
    let folder: TemporaryFolder?
    let store: LibraryStore

    /// Opens a store in a new folder, or in an existing one.
    init(at path: String? = nil) throws {
        let folder = path == nil ? try TemporaryFolder("store") : nil
        self.folder = folder
        var random = SystemRandomNumberGenerator()
        let name = (0..<32).map { _ in String(Int.random(in: 0..<10, using: &random)) }.joined()
        let folderPath = path ?? folder?.path ?? ""
        store = try LibraryStore(
            folder: folderPath,
            server: try TestStore.address(library: folderPath),
            now: 1_700_000_000_000_000,
            newHistoryID: name,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    deinit { try? store.close() }

    /// Writes one transaction unchanged.
    func write(_ result: TransactionResult, sequence: Int64) async throws {
        var record = ChangeRecord(
            sequence: sequence,
            library: store.historyID,
            date: sequence,
            origin: ChangeOrigin(identity: "test")
        )
        record.assets = result.assets
        record.collections = result.collections
        record.lists = result.lists
        try await store.append(record, bytes: record.bytes)
    }
}

/// Creates a library with generated assets, which have no pixels.
///
/// - Parameter options: further options of `Benchmarks generate`
func generateLibrary(at path: String, assets: Int, _ options: [String]) throws {
    let run = try RunningProgram.run(
        "Benchmarks",
        ["generate", "--library", path, "--assets", "\(assets)"] + options,
        environment: try TestStore.environment(library: path)
    )
    try #require(run.status == 0, "\(run.errors)")
}

extension ServiceIdentities {
    /// No identity is a service.
    static let noServices = ServiceIdentities(ownUID: .max) { _ in false }
}

/// The entities of a library.
struct Snapshot: Equatable, Sendable {
    var assets: [ObjectID: Asset] = [:]
    var collections: [ObjectID: AssetCollection] = [:]
    var lists: [ObjectID: CollectionList] = [:]

    var root: CollectionList? { lists[.root] }

    /// Applies records to an empty library; `root` is the initial state of the root folder.
    init(replaying records: [ChangeRecord] = [], root: CollectionList? = nil) {
        lists[.root] = root
        for record in records { apply(record) }
    }

    mutating func apply(_ record: ChangeRecord) {
        for change in record.assets { assets[change.id] = change.after }
        for change in record.collections { collections[change.id] = change.after }
        for change in record.lists { lists[change.id] = change.after }
    }

    /// Returns a copy with sorted memberships, since the memberships of an asset have no order.
    func normalized() -> Snapshot {
        var copy = self
        for (id, asset) in copy.assets {
            copy.assets[id]?.memberships = asset.memberships.sorted { $0.collection < $1.collection }
        }
        return copy
    }
}

extension LibraryStore {
    /// Limits the number of pages of the database, as if the disk were full.
    func limitPages(to count: Int) async throws {
        try await onWriter { try $0.run("PRAGMA max_page_count = \(count)") }
    }

    /// Runs work with the writing connection, outside of a transaction.
    func onWriter<Value: Sendable>(_ work: @escaping @Sendable (SQLConnection) throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "test").async { [self] in
                database.withWriter { connection in continuation.resume(with: Result { try work(connection) }) }
            }
        }
    }

    /// Makes the writing connection wait for a signal; returns when it waits.
    func holdWriter(until gate: DispatchSemaphore) async {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "test").async { [self] in
                database.withWriter { _ in
                    continuation.resume()
                    gate.wait()
                }
            }
        }
    }

    /// Reads all entities from the tables.
    func everything() async throws -> Snapshot {
        try await read { reader in
            var snapshot = Snapshot()
            let rows = try reader.database.all("SELECT row FROM asset") { $0.int64(0) }
            for asset in try reader.assets.assets(rows).values { snapshot.assets[asset.id] = asset }
            // No record mentions the smart albums: they exist from the start.
            for text in try reader.database.all("SELECT id FROM collection WHERE type <> 2", read: { $0.text(0) }) {
                let id = try #require(ObjectID(text))
                snapshot.collections[id] = try reader.collections.collection(id)
            }
            for text in try reader.database.all("SELECT id FROM list", read: { $0.text(0) }) {
                let id = try #require(ObjectID(text))
                snapshot.lists[id] = try reader.collections.list(id)
            }
            return snapshot
        }
    }
}

extension CatalogFixture {
    func everything() async throws -> Snapshot { try await service.store.everything() }
}

func bytes(ofFile path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

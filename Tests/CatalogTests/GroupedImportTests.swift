import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of transactions with many small files, which are prepared in groups.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct GroupedImportTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("group") }

    private func request(_ index: Int, path: String) -> ChangeRequest {
        .createAsset(.init(ref: "\(index)", resources: [NewResource(source: .path(path))]))
    }

    @Test func `the metadata that waits for commits is limited for a transaction, a client and all`() throws {
        let memory = MetadataMemory(limit: 100, limitOfTransaction: 40)
        let uncommitted = (0..<4).map { _ in UncommittedResources() }
        for (index, resources) in uncommitted.enumerated() {
            resources.countMetadata(in: memory.reservation(of: index < 2 ? "a" : "\(index)"))
        }
        try uncommitted[0].reserve(40)
        #expect(throws: CatalogError.recordTooLarge(bytes: 41, limit: 40)) { try uncommitted[0].reserve(1) }
        try uncommitted[1].reserve(10)
        #expect(throws: ResourceError.tooMuchMetadata(limit: 100)) { try uncommitted[1].reserve(1) }
        try uncommitted[2].reserve(40)
        #expect(throws: ResourceError.tooMuchMetadata(limit: 100)) { try uncommitted[3].reserve(11) }
        try uncommitted[3].reserve(10)
        // A transaction that reads its files once more gets a new reservation.
        uncommitted[0].countMetadata(in: memory.reservation(of: "a"))
        #expect(memory.bytes == 60)
        try uncommitted[0].reserve(40)
        #expect(memory.bytes == 100)
        withExtendedLifetime(uncommitted) {}
    }

    @Test func `each file of a group gets its own metadata, and equal files become one asset`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            var requests: [ChangeRequest] = []
            for index in 0..<20 {
                let bytes = image(UInt64(index % 19), date: "2024:06:01 12:30:\(10 + index % 19)")
                requests.append(request(index, path: try folder.write(bytes, to: "photos/\(index).jpg")))
            }
            let result = try await catalog.perform(requests)
            #expect(result.duplicates == ["19"] && result.id("19") == result.id("0"))
            let assets = try await catalog.assets()
            #expect(assets.count == 19 && Set(assets.compactMap(\.creationDate)).count == 19)
            for index in 0..<19 {
                let asset = try #require(assets.first { $0.id == result.id("\(index)") })
                #expect(asset.originalFilename == "\(index).jpg")
            }
            let again = try await catalog.perform(requests)
            #expect(!again.isChanged && again.duplicates.count == 20)
        }
    }

    @Test func `a broken file of a group is named, and the transaction stores no asset`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            for (name, broken) in [("cut", Array(image(7).dropLast(200))), ("other", Array("words".utf8))] {
                var requests: [ChangeRequest] = []
                for index in 0..<12 {
                    let bytes = index == 7 ? broken : image(UInt64(index))
                    requests.append(request(index, path: try folder.write(bytes, to: "\(name)/\(index).jpg")))
                }
                let error = await rpcError { try await catalog.perform(requests) }
                #expect(
                    error?.name == "invalid_resource" && error?.data["request"] == 7,
                    "\(String(describing: error))"
                )
                #expect(error?.message.contains("\(name)/7.jpg") == true)
            }
            let assets = try await catalog.assets()
            #expect(assets.isEmpty)
        }
    }

    @Test func `a group whose worker is killed is read again`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let pids = catalog.service.workers.metrics()["pids"]?.arrayValue?.compactMap(\.intValue) ?? []
            // A stopped worker gets the group but does not read it, so it is killed while it has the group.
            for pid in pids { kill(Int32(pid), SIGSTOP) }
            async let imported = catalog.importImages((0..<16).map { image(UInt64($0)) })
            while catalog.service.workers.metrics()["busy"]?.intValue == 0, !Task.isCancelled { await Task.yield() }
            for pid in pids { kill(Int32(pid), SIGKILL) }
            let count = try await imported.count
            let quarantined = try await catalog.call(ListQuarantine()).resources
            #expect(count == 16 && quarantined.isEmpty)
        }
    }
}

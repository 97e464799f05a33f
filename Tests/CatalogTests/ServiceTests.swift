import Contracts
import Messaging
import JSONValue
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

@Suite(.serialized, .timeLimit(.minutes(5)))
struct ServiceTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("cat") }

    @Test(.spec("S-03", "S-78", "P-23")) func `a file is imported by its path together with its metadata`()
        async throws
    {
        let bytes = TestImages.jpeg(
            width: 60,
            height: 80,
            orientation: 6,
            date: "2024:06:01 12:30:00",
            offset: "+02:00",
            subsec: "123",
            latitude: 52.5,
            longitude: 13.4,
            seed: 7
        )
        let path = try folder.write(bytes, to: "in/one.jpg")
        try await CatalogFixture.with(folder) { catalog in
            let create = ChangeRequest.createAsset(.init(ref: "p", resources: [NewResource(source: .path(path))]))
            let result = try await catalog.perform([create])
            let id = try #require(result.id("p"))
            let asset = try await catalog.asset(id)
            #expect(asset.originalFilename == "one.jpg")
            #expect((asset.pixelWidth, asset.pixelHeight) == (60, 80))
            #expect(asset.creationDate == 1_717_237_800_123_000)
            #expect(asset.creationOffset == 7200)
            #expect(asset.contentType == "public.jpeg")
            #expect(asset.location.map { abs($0.latitude - 52.5) < 1e-6 } == true)
            #expect(asset.resources.first?.digest == ResourceDigest(of: bytes).text)

            let favorite = try await catalog.perform([
                .updateAsset(.init(id: .id(id), set: AssetPatch(isFavorite: true)))
            ])
            #expect(favorite.isChanged && favorite.sequence == result.sequence + 1)
            let changed = try await catalog.asset(id)
            #expect(changed.isFavorite && changed.revision != asset.revision)
            #expect(changed.contentRevision == asset.contentRevision)

            let again = try await catalog.perform([create])
            #expect(again.id("p") == id && again.duplicates == ["p"] && !again.isChanged)
            #expect(try await catalog.history().map(\.sequence) == [1, 2])
        }
    }

    @Test func `a follower receives every change in order while ten clients make a thousand changes`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let start = try await catalog.call(CurrentToken()).token
            let reader = try catalog.connect()
            let writers = Task {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for writer in 0..<10 {
                        group.addTask {
                            for step in 0..<100 {
                                try await catalog.perform([
                                    .updateAsset(.init(id: .id(id), set: AssetPatch(caption: "\(writer) \(step)")))
                                ])
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            var seen: [Int64] = []
            let stream = reader.stream(
                ChangesFollow.method,
                ChangesFollow(token: start).json,
                deadline: nil,
                credit: 64 << 10
            )
            for try await element in stream {
                guard case .notification(let method, let params, _) = element else { break }
                #expect(method == ChangesFollow.notification)
                seen += try (params["records"]?.arrayValue ?? []).map { try ChangeRecord(json: $0).sequence }
                if seen.count == 1000 { break }
            }
            try await writers.value
            #expect(seen == Array((start.sequence + 1)...(start.sequence + 1000)))
            #expect(try await catalog.history().map(\.sequence) == Array(1...(start.sequence + 1000)))
        }
    }
}

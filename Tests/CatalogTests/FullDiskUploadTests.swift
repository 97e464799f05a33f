import Basics
import Contracts
import Hosting
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of uploads on a full disk: their bytes are removed, so that other requests have the space.
@Suite(.timeLimit(.minutes(1)))
struct FullDiskUploadTests {
    @Test func `an upload for which the disk is full has to begin again`() async throws {
        let folder = try TemporaryFolder("upload")
        let disk = try SmallDisk(folder.path, mebibytes: 2)
        defer { disk.unmount() }
        let resources = try ResourceStore(root: folder.file("resources"))
        let uploads = UploadRegistry(
            resources: resources,
            blockingIO: BlockingIOExecutor(),
            clock: .system,
            makeName: CatalogEnvironment().makeName
        )
        let name = try await uploads.begin(BeginUpload(), identity: "uid:1").upload
        let chunk = Bytes(repeating: 7, count: BeginUpload.chunkBytes)
        func append(_ name: String, _ number: Int, _ bytes: Bytes) async throws {
            let request = AppendUpload(upload: name, offset: Int64(number * chunk.count))
            _ = try await uploads.append(request, [bytes], identity: "uid:1")
        }
        let full = await #expect(throws: StorageError.self) {
            for number in 0..<3 { try await append(name, number, chunk) }
        }
        #expect(full?.name == "not_enough_space")
        let again = await rpcError { try await append(name, 0, chunk) }
        #expect(again?.errorCode == .handleExpired)
        let next = try await uploads.begin(BeginUpload(), identity: "uid:1").upload
        try await append(next, 0, chunk)
        #expect(try await uploads.finish(FinishUpload(upload: next), identity: "uid:1").size == Int64(chunk.count))
    }
}

import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The garbage collector removes stored bytes that no row refers to, and no others.
@Suite(.serialized, .timeLimit(.minutes(20)))
struct CollectorTests {
    private static let count = TestEnvironment.rounds(1) > 1 ? 2000 : 400

    /// Returns the digests of the files in the store.
    private static func stored(_ services: SafelightFixture) throws -> Set<String> {
        Set(try services.storedFiles.map { ($0 as NSString).lastPathComponent })
    }

    /// Returns the digests that the assets of a library refer to.
    private static func named(_ library: PhotoLibrary) async throws -> Set<String> {
        var digests: Set<String> = []
        for try await asset in library.allAssets(FetchDescription(.assets)) {
            digests.formUnion(asset.resources.map(\.digest))
        }
        return digests
    }

    private static func image(_ seed: Int) -> [UInt8] {
        TestImages.jpeg(width: 32, height: 24, seed: UInt64(seed))
    }

    @Test func `after an import with half the files broken the store has only files that the database refers to`()
        async throws
    {
        let services = try SafelightFixture("collect", environment: ["SAFELIGHT_COLLECT_AFTER_SECONDS": "1"])
        for number in 0..<Self.count {
            let whole = Self.image(number)
            // These are damaged where only a reader of the whole file detects it.
            let bytes = number % 2 == 0 ? whole : Array(whole.dropLast(200 + number % 100))
            try services.folder.write(bytes, to: "photos/\(number % 7)/\(number).jpg")
        }
        try services.start([.catalog])
        let library = try services.library()
        let arguments = ["import", services.folder.file("photos"), "--parallel", "64"]
        let client = try RunningProgram("safelight", arguments, environment: services.environment)
        // The catalog is killed during the import: files being copied then have no transaction.
        for share in [8, 4] {
            try await waitUntil("some of the files are in the library") {
                try await library.currentToken().token.sequence >= Int64(Self.count / share)
            }
            try services.restart(.catalog)
        }
        #expect(client.wait(seconds: 600) == 3, "\(client.errorText.suffix(2000))")
        let named = try await Self.named(library)
        #expect(named.count == Self.count / 2)
        try await waitUntil("the store holds what the database refers to") {
            try Self.stored(services) == named
        }
        let incoming = services.folder.file("library/resources/.incoming")
        #expect(try FileManager.default.contentsOfDirectory(atPath: incoming).isEmpty)
        // The store remains in that state.
        let collected = try services.safelight(["doctor", "--collect"])
        #expect(try Self.stored(services) == named, "\(collected.output)")
        let deep = try services.safelight(["doctor", "--deep"])
        #expect(deep.output.contains("their content is unchanged"), "\(deep.output)")
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `files that are newer than a restored database are removed on request only`() async throws {
        let services = try SafelightFixture("older", environment: ["SAFELIGHT_COLLECT_AFTER_SECONDS": "1"])
        let live = services.folder.file("library/library.sqlite")
        func create(_ seed: Int) async throws -> ObjectID {
            let library = try services.library()
            let request = ChangeRequest.createAsset(.init(ref: "p", resources: [NewResource(source: .attachment(0))]))
            let result = try await library.perform([request], attachments: [Self.image(seed)])
            await library.close()
            return try #require(result.id("p"))
        }
        try services.start([.catalog])
        _ = try await create(1)
        #expect(services.stop() == [])
        let old = try Data(contentsOf: URL(fileURLWithPath: live))
        try services.start([.catalog])
        _ = try await create(2)
        #expect(services.stop() == [])
        let both = try Self.stored(services)
        for ending in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: live + ending) }
        try old.write(to: URL(fileURLWithPath: live))

        try services.start([.catalog])
        let third = try await create(3)
        let new = try Self.stored(services).subtracting(both)
        let library = try services.library()
        _ = try await library.perform([.deleteAssets(.init(ids: [third]))])
        try await waitUntil("the bytes of the deleted asset are removed") {
            try Self.stored(services).isDisjoint(with: new)
        }
        #expect(try Self.stored(services) == both)
        let collected = try services.safelight(["doctor", "--collect"])
        #expect(try Self.stored(services) == (try await Self.named(library)), "\(collected.output)")
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a refused request leaves no bytes in the store`() async throws {
        let services = try SafelightFixture("refused")
        try services.start([.catalog])
        let library = try services.library()
        func create(_ number: Int) -> ChangeRequest {
            .createAsset(.init(ref: "p\(number)", resources: [NewResource(source: .attachment(number))]))
        }
        let broken = Array(Self.image(2).dropLast(200))
        let error = await #expect(throws: RPCError.self) {
            try await library.perform([create(0), create(1)], attachments: [Self.image(1), broken])
        }
        #expect(error?.errorCode == .invalidResource)
        #expect(try Self.stored(services).isEmpty)
        // The bytes of an existing asset stay even if another request with the same bytes is refused.
        _ = try await library.perform([create(0)], attachments: [Self.image(1)])
        await #expect(throws: RPCError.self) {
            try await library.perform([create(0), create(1)], attachments: [Self.image(1), broken])
        }
        let named = try await Self.named(library)
        #expect(try Self.stored(services) == named)
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `an upload can be used again after a refused change, and a cancelled one leaves no bytes`() async throws
    {
        let services = try SafelightFixture("refused-upload")
        try services.start([.catalog])
        let library = try services.library()
        let upload = try await library.upload(Self.image(1))
        let create = ChangeRequest.createAsset(.init(ref: "p", resources: [NewResource(source: .upload(upload))]))
        let broken = ChangeRequest.createAsset(.init(ref: "b", resources: [NewResource(source: .attachment(0))]))
        let error = await #expect(throws: RPCError.self) {
            try await library.perform([create, broken], attachments: [Array(Self.image(2).dropLast(200))])
        }
        #expect(error?.errorCode == .invalidResource)
        #expect(try Self.stored(services).count == 1, "the upload keeps its bytes")
        _ = try await library.perform([create])
        #expect(try Self.stored(services) == (try await Self.named(library)))

        for number in 10..<30 {
            let cancelled = try await library.upload(Self.image(number))
            _ = try await library.catalog.ask(CancelUpload(upload: cancelled))
        }
        #expect(try Self.stored(services).count == 1, "cancelled uploads leave nothing")
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `deleted assets, cancelled and unused uploads are removed; adjustments that can be undone stay`()
        async throws
    {
        let services = try SafelightFixture("orphans")
        try services.start([.catalog, .changeBroker, .editor])
        let library = try services.library()
        let requests = (0..<3).map {
            ChangeRequest.createAsset(.init(ref: "\($0)", resources: [NewResource(source: .attachment($0))]))
        }
        let result = try await library.perform(requests, attachments: (0..<3).map(Self.image))
        let ids = try (0..<3).map { try #require(result.id("\($0)")) }
        for exposure in [0.25, 0.5] {
            let list = AdjustmentList(operations: [.exposure(exposure)])
            _ = try await library.editor.ask(ApplyEdit(asset: ids[0], adjustments: list))
        }
        _ = try await library.perform([.deleteAssets(.init(ids: [ids[2]]))])
        let unused = try await library.upload(Self.image(50))
        let cancelled = try await library.upload(Self.image(51))
        _ = try await library.catalog.ask(CancelUpload(upload: cancelled))
        let named = try await Self.named(library)
        // No asset refers to these: the replaced render, the deleted asset's original, the first edit's adjustment
        // data, and an upload.
        #expect(try Self.stored(services).count == named.count + 4)

        let doctor = try services.safelight(["doctor"])
        #expect(
            doctor.output.contains("2 files, ") && doctor.output.contains("unreferenced"),
            "\(doctor.output)"
        )
        let collected = try services.safelight(["doctor", "--collect"])
        #expect(collected.output.contains("2 files, ") && collected.output.contains("collected"), "\(collected.output)")
        #expect(try Self.stored(services).count == named.count + 2)
        #expect(try await library.catalog.metrics()["collector"]?["collected"]?.intValue ?? 0 >= 2)

        let history = try await library.editor.ask(EditHistory(asset: ids[0])).result
        #expect(history.steps.count == 2 && history.steps.allSatisfy { $0.adjustments != nil })
        _ = try await library.editor.ask(UndoEdits(asset: ids[0]))
        // An upload that was not used yet stays.
        let late = try await library.perform([
            .createAsset(.init(ref: "late", resources: [NewResource(source: .upload(unused))]))
        ])
        let id = try #require(late.id("late"))
        #expect(try await library.resource(asset: id).readAll(limit: 1 << 20) == Self.image(50))
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a photo beyond the limits is refused before any byte of it is copied`() async throws {
        let services = try SafelightFixture("large")
        try services.start([.catalog])
        let library = try services.library()
        func readWrittenBytes() throws -> Int {
            let process = try #require(services.program(.catalog)).processIdentifier
            let text = try String(contentsOfFile: "/proc/\(process)/io", encoding: .utf8)
            let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("wchar:") })
            return try #require(Int(line.dropFirst(7)))
        }
        let before = try readWrittenBytes()
        for (name, start) in [("photo.jpg", Self.image(1)), ("noise.jpg", [UInt8](repeating: 3, count: 600))] {
            let path = try services.folder.write(start, to: name)
            #expect(truncate(path, 3 << 30) == 0)
            let error = await #expect(throws: RPCError.self) {
                try await library.perform([.createAsset(.init(resources: [NewResource(source: .path(path))]))])
            }
            #expect(error?.errorCode == .invalidResource, "\(String(describing: error))")
        }
        #expect(try readWrittenBytes() - before < 1 << 20)
        #expect(try Self.stored(services).isEmpty)
        await library.close()
        #expect(services.stop() == [])
    }
}

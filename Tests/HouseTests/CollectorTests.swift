import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Removal of stored bytes to which nothing refers, and of no others.
@Suite(.serialized, .timeLimit(.minutes(20)))
struct CollectorTests {
    private static let count = TestEnvironment.rounds(1) > 1 ? 2000 : 400

    /// Returns the digests of the files in the store.
    private static func stored(_ house: RunningHouse) throws -> Set<String> {
        Set(try DamagedStoreTests.stored(house).map { ($0 as NSString).lastPathComponent })
    }

    /// Returns the digests that the assets of a library refer to.
    private static func named(_ library: PhotoLibrary) async throws -> Set<String> {
        var digests: Set<String> = []
        for try await asset in library.allAssets(FetchDescription(.assets)) {
            digests.formUnion(asset.resources.map(\.digest))
        }
        return digests
    }

    private static func picture(_ seed: Int) -> [UInt8] {
        TestPictures.jpeg(width: 32, height: 24, seed: UInt64(seed))
    }

    @Test func `after an import in which half the files are broken the store holds only what the database refers to`()
        async throws
    {
        let house = try RunningHouse("collect", environment: ["SAFELIGHT_COLLECT_AFTER_SECONDS": "1"])
        for number in 0..<Self.count {
            let whole = Self.picture(number)
            // These are damaged where only reading the whole file finds it.
            let bytes = number % 2 == 0 ? whole : Array(whole.dropLast(200 + number % 100))
            try house.folder.write(bytes, to: "photos/\(number % 7)/\(number).jpg")
        }
        try house.start([.catalog])
        let library = try house.library()
        let arguments = ["import", house.folder.file("photos"), "--parallel", "8"]
        let client = try RunningProgram("safelight", arguments, environment: house.environment)
        // The catalog is killed during the import: files being copied then have no transaction.
        for share in [8, 4] {
            try await FeedChecker.until("some of the files are in the library") {
                try await library.currentToken().token.sequence >= Int64(Self.count / share)
            }
            try house.restart(.catalog)
        }
        #expect(client.wait(seconds: 600) == 3, "\(client.errorText.suffix(2000))")
        let named = try await Self.named(library)
        #expect(named.count == Self.count / 2)
        try await FeedChecker.until("the store holds what the database refers to") {
            try Self.stored(house) == named
        }
        let incoming = house.folder.file("library/resources/.incoming")
        #expect(try FileManager.default.contentsOfDirectory(atPath: incoming).isEmpty)
        // The store remains in that state.
        let collected = try house.safelight(["doctor", "--collect"])
        #expect(try Self.stored(house) == named, "\(collected.output)")
        let deep = try house.safelight(["doctor", "--deep"])
        #expect(deep.output.contains("their content is unchanged"), "\(deep.output)")
        await library.close()
        #expect(house.stop() == [])
    }

    @Test func `a refused request leaves no bytes in the store`() async throws {
        let house = try RunningHouse("refused")
        try house.start([.catalog])
        let library = try house.library()
        func create(_ number: Int) -> ChangeRequest {
            .createAsset(.init(ref: "p\(number)", resources: [NewResource(source: .attachment(number))]))
        }
        let broken = Array(Self.picture(2).dropLast(200))
        let error = await #expect(throws: RPCError.self) {
            try await library.perform([create(0), create(1)], attachments: [Self.picture(1), broken])
        }
        #expect(error?.refusal == .invalidResource)
        #expect(try Self.stored(house).isEmpty)
        // The bytes of an existing asset stay even if another request with the same bytes is refused.
        _ = try await library.perform([create(0)], attachments: [Self.picture(1)])
        await #expect(throws: RPCError.self) {
            try await library.perform([create(0), create(1)], attachments: [Self.picture(1), broken])
        }
        let named = try await Self.named(library)
        #expect(try Self.stored(house) == named)
        await library.close()
        #expect(house.stop() == [])
    }

    @Test func `deleted assets, cancelled and unused uploads are removed; adjustments that can be undone stay`()
        async throws
    {
        let house = try RunningHouse("orphans")
        try house.start([.catalog, .changeBroker, .editor])
        let library = try house.library()
        let requests = (0..<3).map {
            ChangeRequest.createAsset(.init(ref: "\($0)", resources: [NewResource(source: .attachment($0))]))
        }
        let made = try await library.perform(requests, attachments: (0..<3).map(Self.picture))
        let ids = try (0..<3).map { try #require(made.id("\($0)")) }
        for exposure in [0.25, 0.5] {
            let list = AdjustmentList(operations: [.exposure(exposure)])
            _ = try await library.editor.ask(ApplyEdit(asset: ids[0], adjustments: list))
        }
        _ = try await library.perform([.deleteAssets(.init(ids: [ids[2]]))])
        let kept = try await library.upload(Self.picture(50))
        let cancelled = try await library.upload(Self.picture(51))
        _ = try await library.catalog.ask(CancelUpload(upload: cancelled))
        let named = try await Self.named(library)
        // No asset refers to these: the replaced render, the deleted asset's original, the first edit's adjustment
        // data, and an upload.
        #expect(try Self.stored(house).count == named.count + 4)

        let doctor = try house.safelight(["doctor"])
        #expect(
            doctor.output.contains("2 files, ") && doctor.output.contains("unreferenced"),
            "\(doctor.output)"
        )
        let collected = try house.safelight(["doctor", "--collect"])
        #expect(collected.output.contains("2 files, ") && collected.output.contains("collected"), "\(collected.output)")
        #expect(try Self.stored(house).count == named.count + 2)
        #expect(try await library.catalog.figures()["collector"]?["collected"]?.intValue ?? 0 >= 2)

        let history = try await library.editor.ask(EditHistory(asset: ids[0])).result
        #expect(history.steps.count == 2 && history.steps.allSatisfy { $0.adjustments != nil })
        _ = try await library.editor.ask(UndoEdits(asset: ids[0]))
        // An upload that was not used yet stays.
        let late = try await library.perform([
            .createAsset(.init(ref: "late", resources: [NewResource(source: .upload(kept))]))
        ])
        let id = try #require(late.id("late"))
        #expect(try await library.resource(asset: id).readAll(limit: 1 << 20) == Self.picture(50))
        await library.close()
        #expect(house.stop() == [])
    }

    @Test func `a photo beyond the limits is refused before any byte of it is copied`() async throws {
        let house = try RunningHouse("large")
        try house.start([.catalog])
        let library = try house.library()
        func written() throws -> Int {
            let process = try #require(house.program(.catalog)).processIdentifier
            let text = try String(contentsOfFile: "/proc/\(process)/io", encoding: .utf8)
            let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("wchar:") })
            return try #require(Int(line.dropFirst(7)))
        }
        let before = try written()
        for (name, start) in [("photo.jpg", Self.picture(1)), ("noise.jpg", [UInt8](repeating: 3, count: 600))] {
            let path = try house.folder.write(start, to: name)
            #expect(truncate(path, 3 << 30) == 0)
            let error = await #expect(throws: RPCError.self) {
                try await library.perform([.createAsset(.init(resources: [NewResource(source: .path(path))]))])
            }
            #expect(error?.refusal == .invalidResource, "\(String(describing: error))")
        }
        #expect(try written() - before < 1 << 20)
        #expect(try Self.stored(house).isEmpty)
        await library.close()
        #expect(house.stop() == [])
    }
}

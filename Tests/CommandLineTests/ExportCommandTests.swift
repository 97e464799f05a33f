import ArgumentParser
import Basics
import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import CommandLine

/// The end of an export whose services end.
@Suite(.timeLimit(.minutes(1)))
struct ExportCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("export") }

    private var files: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.file("out"))) ?? []).sorted()
    }

    private static func assets(_ count: Int) -> [Asset] {
        (1...count).map { number in
            var asset = Asset(id: ScriptedService.id("a", number))
            asset.originalFilename = "IMG_\(number).jpg"
            return asset
        }
    }

    /// Returns a thumbnailer that returns some images. Then its connections are lost, and if `isUnresponsive`, it does
    /// not answer `health` either.
    private func thumbnailer(
        images: Int,
        isUnresponsive: Bool = false,
        _ requests: AwaitableValue<Int> = AwaitableValue(0)
    ) -> ScriptedService {
        ScriptedService { request, _ throws(RPCError) in
            guard request.method != Health.method else {
                guard !isUnresponsive || requests.current <= images else {
                    throw ErrorCode.unavailable.error("it is stopping")
                }
                return ScriptedService.health
            }
            let number = requests.withLock { count in
                count += 1
                return count
            }
            guard number <= images else { throw ErrorCode.connectionLost.error("the thumbnailer has ended") }
            let image = try ImageRequest(params: request.params)
            let bytes = Bytes("image of \(image.asset)".utf8)
            var result = ImageRequest.Result(
                asset: image.asset,
                contentRevision: Revision(0),
                sequence: 1,
                mimeType: "image/jpeg",
                pixelWidth: 60,
                pixelHeight: 40
            )
            result.size = Int64(bytes.count)
            return Reply(result.json, attachments: [bytes])
        }
    }

    /// Exports images of all assets of a catalog, or of named ones.
    ///
    /// - Returns: the error with which the export ends
    private func export(
        _ ids: [ObjectID] = [],
        from catalog: any RequestHandler,
        _ thumbnailer: ScriptedService?
    ) async throws -> (any Error)? {
        let words = ["export", "--size", "90", "--output", folder.file("out")] + ids.map(\.text)
        return try await ClientFixture.with { fixture in
            let library = fixture.library
            let export: @Sendable () async throws -> (any Error)? = {
                let command = try #require(try SafelightCommand.parseAsRoot(words) as? ExportCommand)
                do {
                    let output = Output(json: true)
                    try await command.export(from: library, output, restartTime: .milliseconds(500))
                    return nil
                } catch {
                    return error
                }
            }
            return try await fixture.serving(fixture.endpoints.catalog, catalog) {
                guard let thumbnailer else { return try await export() }
                return try await fixture.serving(fixture.endpoints.thumbnailers[0], thumbnailer, while: export)
            }
        }
    }

    @Test func `an export ends with the first error of a service that does not come back`() async throws {
        let requests = AwaitableValue(0)
        let thumbnailer = thumbnailer(images: 1, isUnresponsive: true, requests)
        let failure = try await export(from: LargeAssetCatalog(Self.assets(3)), thumbnailer) as? CommandFailure
        #expect(failure?.status == .partly && failure?.name == "connection_lost", "\(failure as Any)")
        #expect(failure?.message.contains("stopped after 1 of 3 assets") == true, "\(failure as Any)")
        #expect(requests.current == 2)
        #expect(files == ["IMG_1.jpg"])
    }

    @Test func `an export continues after an image that failed if the service responds`() async throws {
        let requests = AwaitableValue(0)
        let thumbnailer = thumbnailer(images: 1, requests)
        let error = try await export(from: LargeAssetCatalog(Self.assets(3)), thumbnailer)
        #expect((error as? ExitCode)?.rawValue == CommandFailure.Status.partly.rawValue)
        // Each image is requested three times: the thumbnailer may have been restarted for another reason.
        #expect(requests.current == 7)
        #expect(files == ["IMG_1.jpg"])
    }

    @Test func `an export ends before the first asset if a service does not respond`() async throws {
        let failure = try await export(from: LargeAssetCatalog(Self.assets(3)), nil) as? CommandFailure
        #expect(failure?.status == .refused && failure?.name == "deadline_exceeded", "\(failure as Any)")
        #expect(failure?.message.contains("the thumbnailer does not respond") == true, "\(failure as Any)")
        #expect(files.isEmpty)
    }

    @Test func `an export that ends because of the catalog is a partial success`() async throws {
        let assets = Self.assets(101)
        let catalog = LargeAssetCatalog(assets)
        let failing = ScriptedService { request, context throws(RPCError) in
            guard request.method != FetchAssets.method || catalog.fetches.isEmpty else {
                throw ErrorCode.libraryOffline.error("the library is offline")
            }
            return try await catalog.handle(request, context)
        }
        let failure = try await export(assets.map(\.id), from: failing, thumbnailer(images: 101)) as? CommandFailure
        #expect(failure?.status == .partly && failure?.name == "library_offline", "\(failure as Any)")
        #expect(failure?.message.contains("stopped after 100 of 101 assets") == true, "\(failure as Any)")
        #expect(files.count == 100)
    }
}

import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Requests that exceed the limits of a worker: each fails with a named error, and the image bytes are not quarantined.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct GreedyRequestTests {
    private func createAsset(_ services: SafelightFixture, _ library: PhotoLibrary, _ width: Int = 64) async throws
        -> ObjectID
    {
        let photo = TestImages.jpeg(width: width, height: width * 3 / 4, seed: 1)
        return try await library.createAsset(path: services.folder.write(photo, to: "p.jpg"))
    }

    @Test func `enormous AVIFs of a photo are refused, and other clients still get the photo`() async throws {
        let services = try SafelightFixture("greedy", environment: ["SAFELIGHT_JOB_SECONDS": "1"])
        try services.start()
        let (greedy, honest) = (try services.library("greedy"), try services.library("honest"))
        let id = try await createAsset(services, honest)
        for side in [9000, 9001, 9002] {
            let request = ImageRequest(
                asset: id,
                targetSize: .size(width: side, height: side),
                resizeMode: .exact,
                format: .avif
            )
            let started = ContinuousClock.now
            let error = await greedy.thumbnailer.rpcError(of: request)
            #expect(error?.errorCode == .limitExceeded, "\(side): \(String(describing: error))")
            #expect(
                error?.message.contains("ask for") == true,
                "the message says what to request instead: \(error?.message ?? "")"
            )
            #expect(ContinuousClock.now - started < .milliseconds(900), "refused before any work began")
        }
        let small = ImageRequest(asset: id, targetSize: .size(width: 50, height: 50), format: .avif)
        #expect(await honest.thumbnailer.rpcError(of: small) == nil)
        #expect(try await honest.catalog.ask(ListQuarantine()).result.count == 0)
        #expect(try await honest.thumbnailer.metrics()["workers"]?["timedOut"] == 0)
        await greedy.close()
        await honest.close()
        #expect(services.stop() == [])
    }

    @Test func `an edit that takes too long fails as limit_exceeded, and nothing is quarantined`() async throws {
        let services = try SafelightFixture("slow-edit", environment: ["SAFELIGHT_JOB_SECONDS": "1"])
        try services.start()
        let library = try services.library()
        let id = try await createAsset(services, library, 5600)
        // Four passes of an effect over 23 megapixels, which take more than a second on any machine.
        let slow = AdjustmentList(operations: [try Adjustment(.despeckle, ["value": 4])])
        for _ in 1...3 {
            let error = await library.editor.rpcError(of: ApplyEdit(asset: id, adjustments: slow))
            #expect(error?.errorCode == .limitExceeded, "\(String(describing: error))")
        }
        #expect(try await library.catalog.ask(ListQuarantine()).result.count == 0)
        let small = ImageRequest(asset: id, targetSize: .size(width: 50, height: 50))
        #expect(await library.thumbnailer.rpcError(of: small) == nil)
        await library.close()
        #expect(services.stop() == [])
    }
}

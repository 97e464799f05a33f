import Foundation
import PhotoKit
import Synchronization
import TestSupport

/// The four services as real processes, and a library that is the shared one while a test body runs.
enum LibraryFixture {
    static func with(
        _ name: String,
        services: [SafelightFixture.Service] = SafelightFixture.Service.allCases,
        generated: Int = 0,
        environment: [String: String] = [:],
        _ body: (SafelightFixture) async throws -> Void
    ) async throws {
        let fixture = try SafelightFixture("pk-\(name)", environment: environment)
        if generated > 0 { try fixture.generateLibrary(assets: generated, ["--albums", "5"]) }
        try fixture.start(services)
        let library = try PHPhotoLibrary.connect(configuration(of: fixture))
        do {
            try await body(fixture)
        } catch {
            await library.close()
            throw FixtureError(description: "\(error)\n\(fixture.logs)")
        }
        await library.close()
        let problems = fixture.stop()
        if !problems.isEmpty { throw FixtureError(description: problems.joined(separator: "\n")) }
    }

    static func configuration(of fixture: SafelightFixture) -> PHPhotoLibrary.Configuration {
        PHPhotoLibrary.Configuration(
            runFolder: fixture.folder.file("run"),
            client: "photokit-tests",
            purpose: "tests of PhotoKit"
        )
    }

    /// Imports images with different dates, and returns their assets, oldest first.
    static func importImages(_ count: Int, width: Int = 320, height: Int = 240) throws -> [PHAsset] {
        let identifiers = Mutex<[String]>([])
        try PHPhotoLibrary.shared().performChangesAndWait {
            for index in 0..<count {
                let bytes = TestImages.jpeg(
                    width: width,
                    height: height,
                    date: "2024:06:\(10 + index) 12:00:00",
                    seed: UInt64(index + 1)
                )
                guard let image = UIImage(data: Data(bytes)) else { continue }
                let request = PHAssetChangeRequest.creationRequestForAsset(from: image)
                identifiers.withLock { $0.append(request.placeholderForCreatedAsset?.localIdentifier ?? "") }
            }
        }
        let assets = PHAsset.fetchAssets(withLocalIdentifiers: identifiers.withLock { $0 }, options: nil)
        return Array(assets)
    }
}

/// Collects the arguments of callbacks and lets a test wait for them.
final class Recorded<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])
    private let stream = AsyncStream<Value>.makeStream()

    func add(_ value: Value) {
        values.withLock { $0.append(value) }
        stream.continuation.yield(value)
    }

    var all: [Value] { values.withLock { $0 } }

    /// Waits for the next value, and returns each value once.
    func next() async -> Value? {
        var iterator = stream.stream.makeAsyncIterator()
        return await iterator.next()
    }
}

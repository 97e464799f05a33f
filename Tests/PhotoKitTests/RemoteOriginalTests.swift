import Foundation
import PhotoKit
import Synchronization
import TestSupport
import Testing

extension PhotoKitTests {
    /// PhotoKit's options for originals that are only in an object store, against a real S3 server.
    @Suite(.serialized, .timeLimit(.minutes(3)))
    struct RemoteOriginals {
        /// Records the progress that a handler receives.
        private final class ProgressRecorder: Sendable {
            private let parts = Mutex<[Double]>([])
            private let failures = Mutex(0)

            func add(_ part: Double, _ error: (any Error)? = nil) {
                if error != nil { failures.withLock { $0 += 1 } } else { parts.withLock { $0.append(part) } }
            }

            var errors: Int { failures.withLock { $0 } }

            /// Removes the recorded progress, and returns it.
            func removeParts() -> [Double] {
                parts.withLock { parts in
                    defer { parts = [] }
                    return parts
                }
            }
        }

        private func expectProgress(_ progress: ProgressRecorder, _ location: SourceLocation = #_sourceLocation) {
            let parts = progress.removeParts()
            #expect(
                parts == parts.sorted() && parts.first ?? -1 >= 0 && parts.last == 1,
                "\(parts)",
                sourceLocation: location
            )
        }

        /// Evicts the local files. A file may remain in use for a moment after a request.
        private func evict(_ fixture: SafelightFixture) throws {
            let end = ContinuousClock.now + .seconds(60)
            repeat {
                let released = try fixture.safelight(["storage", "release", "--where", "mediaType != 'audio'"])
                try #require(released.status == 0 && ContinuousClock.now < end, "\(released)")
            } while try fixture.safelight(["fetch", "--where", "isLocal == YES", "--count"]).output != "0\n"
        }

        @Test(.spec("S-47", "S-48", "S-93", "T-33"))
        func `network access depends on the options of a request, and progress handlers are called`() async throws {
            let store = try S3Server()
            try await LibraryFixture.with("remote", environment: store.environment) { fixture in
                let asset = try #require(try LibraryFixture.importImages(1).first)
                let photo = try #require(PHAssetResource.assetResources(for: asset).first)
                func release() throws {
                    for _ in 0..<600 {
                        let status = try fixture.safelight(["storage"])
                        if status.output.contains("waiting   0 files") { break }
                    }
                    try evict(fixture)
                }
                let progress = ProgressRecorder()
                let options = PHImageRequestOptions()
                options.progressHandler = { part, error, _, _ in progress.add(part, error) }
                let manager = PHImageManager.default()

                try release()
                let before = store.requests.count
                let refused = Recorded<(Bool, Bool?, Int?)>()
                manager.requestImageDataAndOrientation(for: asset, options: options) { data, _, _, info in
                    refused.add(
                        (
                            data == nil, info?[PHImageResultIsInCloudKey] as? Bool,
                            (info?[PHImageErrorKey] as? PHPhotosError)?.errorCode
                        )
                    )
                }
                let answer = try #require(await refused.next())
                #expect(answer.0 && answer.1 == true && answer.2 == 3164)
                #expect(store.requests.count == before && progress.removeParts() == [])

                options.isNetworkAccessAllowed = true
                let data = try await manager.imageData(for: asset, options: options)
                #expect(Int64(data.data.count) == photo.fileSize)
                expectProgress(progress)
                _ = try await manager.imageData(for: asset, options: options)
                #expect(progress.removeParts() == [], "a local original")

                try release()
                // The handler is called although the caller is blocked.
                options.isSynchronous = true
                let image = Mutex<CGSize?>(nil)
                manager.requestImage(
                    for: asset,
                    targetSize: CGSize(width: 111, height: 111),
                    contentMode: .aspectFit,
                    options: options
                ) { result, _ in image.withLock { $0 = result?.size } }
                #expect(image.withLock { $0 } != nil)
                expectProgress(progress)

                // A handler that sets `stop` cancels the request.
                try release()
                options.isSynchronous = false
                options.progressHandler = { part, error, stop, _ in
                    progress.add(part, error)
                    stop.pointee = true
                }
                let stopped = Recorded<Bool?>()
                manager.requestImageDataAndOrientation(for: asset, options: options) { data, _, _, info in
                    stopped.add(data == nil ? info?[PHImageCancelledKey] as? Bool : false)
                }
                #expect(await stopped.next() == true)
                #expect(progress.removeParts().count == 1)

                // If the store cannot be used, the handler and the result get the error. The transfer that was stopped
                // may have ended just before.
                try release()
                try store.setFaults(#"{"status": 503, "code": "SlowDown"}"#)
                options.progressHandler = { part, error, _, _ in progress.add(part, error) }
                await #expect(throws: PHPhotosError.self) { try await manager.imageData(for: asset, options: options) }
                #expect(progress.errors == 1)
                try store.setFaults("{}")
                _ = progress.removeParts()

                let bytes = PHAssetResourceRequestOptions()
                bytes.progressHandler = { progress.add($0) }
                try release()
                let file = fixture.folder.file("written.jpg")
                let url = URL(fileURLWithPath: file)
                await #expect(throws: PHPhotosError.self) {
                    try await PHAssetResourceManager.default().writeData(for: photo, toFile: url, options: bytes)
                }
                #expect(progress.removeParts() == [])
                bytes.isNetworkAccessAllowed = true
                try await PHAssetResourceManager.default().writeData(for: photo, toFile: url, options: bytes)
                expectProgress(progress)
                #expect(FileManager.default.contents(atPath: file) == data.data)

                let editing = PHContentEditingInputRequestOptions()
                editing.progressHandler = { part, _ in progress.add(part) }
                try release()
                let inputs = Recorded<Bool?>()
                asset.requestContentEditingInput(with: editing) { input, info in
                    inputs.add(input == nil ? info[PHContentEditingInputResultIsInCloudKey] as? Bool : nil)
                }
                #expect(await inputs.next() == true)
                #expect(progress.removeParts() == [])
                editing.isNetworkAccessAllowed = true
                let input = try await asset.contentEditingInput(with: editing)
                #expect(input.fullSizeImageURL.flatMap { try? Data(contentsOf: $0) } == data.data)
                expectProgress(progress)
            }
        }

        @Test(.spec("S-47", "S-48"))
        func `videos are downloaded with progress, and read with network access`() async throws {
            let store = try S3Server()
            try await LibraryFixture.with("remote-video", environment: store.environment) { fixture in
                let path = fixture.folder.file("film.mov")
                try FFmpegVideos.make(path, ["-c:v", "libx264", "-pix_fmt", "yuv420p"])
                #expect(try fixture.safelight(["import", path]).status == 0)
                for _ in 0..<600 {
                    let status = try fixture.safelight(["storage"])
                    if status.output.contains("waiting   0 files") { break }
                }
                let asset = try #require(PHAsset.fetchAssets(with: .video, options: nil).firstObject)
                let progress = ProgressRecorder()
                let options = PHVideoRequestOptions()
                options.progressHandler = { part, error, _, _ in progress.add(part, error) }
                try evict(fixture)
                await #expect(throws: PHPhotosError.self) {
                    try await PHImageManager.default().video(for: asset, options: options)
                }
                options.isNetworkAccessAllowed = true
                let video = try await PHImageManager.default().video(for: asset, options: options)
                expectProgress(progress)
                // It is downloaded again if the file is evicted while it is played.
                try evict(fixture)
                let bytes = try await video.data(from: 0, length: 1000)
                #expect(bytes.count == min(1000, Int(video.byteCount)))
                expectProgress(progress)
            }
        }
    }
}

import Foundation
import PhotoKit
import Synchronization
import TestSupport
import Testing

extension PhotoKitTests {
    @Suite(.serialized, .timeLimit(.minutes(5)))
    struct Content {
        /// Returns the error of the next call, which must exist; nil if the call has no error.
        private static func nextError(_ calls: Recorded<PHPhotosError?>) async throws -> PHPhotosError? {
            let call = await calls.next()
            return try #require(call)
        }

        /// `004`: the five steps of an edit; resuming it; another program; reverting.
        @Test(.spec("S-85", "S-86", "S-88", "S-89", "S-90", "S-91", "S-92", "T-22", "T-23", "D4"))
        func `an edit is committed, resumed and reverted`() async throws {
            try await LibraryFixture.with("edit") { _ in
                let library = PHPhotoLibrary.shared()
                let asset = try #require(try LibraryFixture.importImages(1).first)
                func fetchAgain() throws -> PHAsset {
                    try #require(
                        PHAsset.fetchAssets(withLocalIdentifiers: [asset.localIdentifier], options: nil).firstObject
                    )
                }
                /// Commits a JPEG of a width as the render of an edit.
                func commit(_ input: PHContentEditingInput, format: String, width: Int) async throws {
                    let output = PHContentEditingOutput(contentEditingInput: input)
                    #expect(output.renderedContentURL.pathExtension == "jpg")
                    let data = PHAdjustmentData(
                        formatIdentifier: format,
                        formatVersion: "1.0",
                        data: Data([0, 1, 0, 255])
                    )
                    output.adjustmentData = data
                    let render = TestImages.jpeg(width: width, height: 50, seed: UInt64(width))
                    try Data(render).write(to: output.renderedContentURL)
                    try await library.performChanges {
                        PHAssetChangeRequest(for: asset).contentEditingOutput = output
                    }
                }
                // 1 and 2: request the input, and receive it.
                let inputs = Recorded<PHContentEditingInput?>()
                asset.requestContentEditingInput(with: PHContentEditingInputRequestOptions()) { input, info in
                    inputs.add(input)
                }
                let first = try #require(await inputs.next().flatMap { $0 })
                #expect(first.adjustmentData == nil && first.mediaType == .image)
                let file = try #require(first.fullSizeImageURL)
                #expect(UIImage(contentsOfFile: file.path)?.size == CGSize(width: 320, height: 240))
                #expect(first.displaySizeImage?.size == CGSize(width: 320, height: 240))
                // 3 to 5: adjustment data, output, commit.
                try await commit(first, format: "org.example.a", width: 60)
                #expect(try fetchAgain().hasAdjustments && fetchAgain().adjustmentFormatIdentifier == "org.example.a")
                #expect(try asset.adjustmentsState == .none && fetchAgain().adjustmentsState == .userAdjusted)
                #expect(try fetchAgain().pixelWidth == 60)
                let render = try #require(
                    PHAssetResource.assetResources(for: try fetchAgain()).first { $0.type == .fullSizePhoto }
                )

                // The program that committed the edit resumes it, from the version before it (D4).
                let options = PHContentEditingInputRequestOptions()
                options.canHandleAdjustmentData = { $0.formatIdentifier == "org.example.a" }
                let again = try await asset.contentEditingInput(with: options)
                #expect(again.adjustmentData?.data == Data([0, 1, 0, 255]))
                #expect(again.fullSizeImageURL.flatMap { UIImage(contentsOfFile: $0.path) }?.size.width == 320)
                // The handler runs on a thread that may call synchronous functions.
                let asking = PHContentEditingInputRequestOptions()
                asking.canHandleAdjustmentData = { _ in
                    PHAsset.fetchAssets(withLocalIdentifiers: [asset.localIdentifier], options: nil).count == 1
                }
                asset.requestContentEditingInput(with: asking) { input, _ in inputs.add(input) }
                #expect(await inputs.next().flatMap { $0 }?.adjustmentData?.data == Data([0, 1, 0, 255]))
                // Another program gets the current version, and no adjustment data.
                let other = try await asset.contentEditingInput()
                #expect(other.adjustmentData == nil)
                #expect(other.fullSizeImageURL.flatMap { UIImage(contentsOfFile: $0.path) }?.size.width == 60)
                try await commit(other, format: "org.example.b", width: 40)
                // An input is refused after another edit was committed.
                await #expect(throws: PHPhotosError.self) {
                    try await commit(again, format: "org.example.a", width: 30)
                }
                // An earlier render has its own bytes, or none if the library has removed them.
                var count: Int64 = 0
                do {
                    for try await part in PHAssetResourceManager.default().data(for: render) {
                        count += Int64(part.count)
                    }
                    #expect(count == render.fileSize)
                } catch PHPhotosError.missingResource {}
                let types = PHAssetResource.assetResources(for: try fetchAgain()).map(\.type)
                #expect(types.contains(.photo) && types.contains(.fullSizePhoto) && types.contains(.adjustmentData))

                try await library.performChanges { PHAssetChangeRequest(for: asset).revertAssetContentToOriginal() }
                #expect(try !fetchAgain().hasAdjustments && fetchAgain().pixelWidth == 320)

                // An asset that is edited from the beginning (T-22).
                var created: PHObjectPlaceholder?
                try await library.performChanges {
                    let request = PHAssetCreationRequest.forAsset()
                    request.addResource(with: .photo, data: Data(TestImages.jpeg(seed: 5)), options: nil)
                    guard let placeholder = request.placeholderForCreatedAsset else { return }
                    let output = PHContentEditingOutput(placeholderForCreatedAsset: placeholder)
                    output.adjustmentData = PHAdjustmentData(formatIdentifier: "x", formatVersion: "1", data: Data())
                    try? Data(TestImages.jpeg(width: 44, height: 33)).write(to: output.renderedContentURL)
                    request.contentEditingOutput = output
                    created = placeholder
                }
                let id = try #require(created?.localIdentifier)
                #expect(PHAsset.fetchAssets(withLocalIdentifiers: [id], options: nil).firstObject?.pixelWidth == 44)
            }
        }

        @Test(.spec("T-30", "T-31", "T-32"))
        func `the bytes of resources are read, written and compared with their digest`() async throws {
            try await LibraryFixture.with("resource", services: [.catalog]) { fixture in
                let asset = try #require(try LibraryFixture.importImages(1, width: 2000, height: 1500).first)
                let resource = try #require(PHAssetResource.assetResources(for: asset).first)
                #expect(resource.type == .photo && resource.uniformTypeIdentifier == "public.jpeg")
                #expect(resource.pixelWidth == 2000 && resource.assetLocalIdentifier == asset.localIdentifier)
                let manager = PHAssetResourceManager.default()
                let (parts, ends) = (Recorded<Data>(), Recorded<PHPhotosError?>())
                manager.requestData(for: resource, options: nil) {
                    parts.add($0)
                } completionHandler: {
                    ends.add($0 as? PHPhotosError)
                }
                #expect(try await Self.nextError(ends) == nil)
                let whole = parts.all.reduce(Data(), +)
                #expect(Int64(whole.count) == resource.fileSize)
                let url = URL(fileURLWithPath: fixture.folder.file("copy.jpg"))
                try await manager.writeData(for: resource, toFile: url, options: nil)
                #expect(try Data(contentsOf: url) == whole)
                let written = Recorded<PHPhotosError?>()
                let impossible = URL(fileURLWithPath: fixture.folder.file("no/such/folder.jpg"))
                manager.writeData(for: resource, toFile: impossible, options: nil) { written.add($0 as? PHPhotosError) }
                #expect(try await Self.nextError(written) != nil)

                // A download can take any time, but the request does not wait longer than the deadline for a
                // thumbnailer that does not run.
                var configuration = LibraryFixture.configuration(of: fixture)
                configuration.deadline = .seconds(2)
                let library = try PHPhotoLibrary.connect(configuration)
                let same = try #require(PHAsset.fetchAssets(with: nil).firstObject)
                let options = PHImageRequestOptions()
                options.isNetworkAccessAllowed = true
                let error = await #expect(throws: PHPhotosError.self) {
                    try await PHImageManager.default().imageData(for: same, options: options)
                }
                #expect(error?.name == "deadline_exceeded")
                await library.close()
            }
        }

        /// `002`: players, assets and export sessions of videos; and Live Photos.
        @Test(.spec("S-59", "S-60", "S-61", "S-62", "T-47"))
        func `videos and Live Photos are played, read and exported`() async throws {
            try await LibraryFixture.with("video") { fixture in
                let path = fixture.folder.file("film.mp4")
                try FFmpegVideos.make(path, ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"])
                let original = try Data(contentsOf: URL(fileURLWithPath: path))
                let motion = TestMotionPhotos.jpeg(.container, video: Array(original))
                var ids: [String] = []
                try await PHPhotoLibrary.shared().performChanges {
                    let video = PHAssetChangeRequest.creationRequestForAssetFromVideo(
                        atFileURL: URL(fileURLWithPath: path)
                    )
                    let live = PHAssetCreationRequest.forAsset()
                    live.addResource(with: .photo, data: Data(motion.bytes), options: nil)
                    ids = [video, live].compactMap { $0?.placeholderForCreatedAsset?.localIdentifier }
                }
                let assets = PHAsset.fetchAssets(withLocalIdentifiers: ids, options: nil)
                let (video, live) = (assets[0], assets[1])
                #expect(video.mediaType == .video && video.playbackStyle == .video && abs(video.duration - 1) < 0.2)
                let manager = PHImageManager.default()
                let items = Recorded<AVPlayerItem?>()
                manager.requestPlayerItem(forVideo: video, options: nil) { item, _ in items.add(item) }
                let item = try #require(await items.next().flatMap { $0 })
                #expect(item.asset.naturalSize == CGSize(width: 320, height: 240))
                let found = Recorded<(asset: AVAsset?, hasMix: Bool)>()
                manager.requestAVAsset(forVideo: video, options: PHVideoRequestOptions()) { asset, mix, _ in
                    found.add((asset, mix != nil))
                }
                let (loaded, hasMix) = try #require(await found.next())
                let asset = try #require(loaded)
                #expect(!hasMix && asset.tracks.first?.mediaType == "video" && asset.byteCount == Int64(original.count))
                let copy = URL(fileURLWithPath: fixture.folder.file("copy.mp4"))
                try await asset.write(to: copy)
                #expect(try Data(contentsOf: copy).count == original.count)

                let sessions = Recorded<AVAssetExportSession?>()
                manager.requestExportSession(
                    forVideo: video,
                    options: nil,
                    exportPreset: AVAssetExportPreset640x480
                ) { session, _ in sessions.add(session) }
                let session = try #require(await sessions.next().flatMap { $0 })
                let target = URL(fileURLWithPath: fixture.folder.file("export.mp4"))
                session.outputURL = target
                try await session.export()
                #expect(session.progress == 1)
                #expect((try? Data(contentsOf: target).count) ?? 0 > 100)
                let problems = Recorded<String?>()
                manager.requestExportSession(forVideo: video, options: nil, exportPreset: "nothing") { _, info in
                    problems.add((info?[PHImageErrorKey] as? PHPhotosError)?.name)
                }
                #expect(await problems.next() == "invalid_options")

                #expect(live.playbackStyle == .livePhoto && live.mediaSubtypes.contains(.photoLive))
                let photos = Recorded<(photo: PHLivePhoto?, isFinal: Bool)>()
                manager.requestLivePhoto(
                    for: live,
                    targetSize: CGSize(width: 200, height: 200),
                    contentMode: .aspectFit,
                    options: nil
                ) { photo, info in
                    photos.add((photo, info?[PHImageResultIsFinalKey] as? Bool ?? false))
                }
                var last: PHLivePhoto?
                while let call = await photos.next() {
                    last = call.photo
                    if call.isFinal { break }
                }
                #expect(last?.film?.byteCount == Int64(original.count))
                #expect((last?.size.width ?? 0) >= 200)
            }
        }

        @Test(.spec("S-89"))
        func `an edit without a folder for its file fails with notEnoughSpace`() async throws {
            try await LibraryFixture.with("no-folder", services: [.catalog]) { fixture in
                // The closure runs in its own process, which inherits the variable.
                setenv("SAFELIGHT_RUN", fixture.folder.file("run"), 1)
                await #expect(processExitsWith: .success) {
                    let photo = Data(TestImages.jpeg())
                    setenv("TMPDIR", "/dev/null", 1)
                    do {
                        try PHPhotoLibrary.shared().performChangesAndWait {
                            let request = PHAssetCreationRequest.forAsset()
                            request.addResource(with: .photo, data: photo, options: nil)
                            guard let placeholder = request.placeholderForCreatedAsset else { return }
                            request.contentEditingOutput = PHContentEditingOutput(
                                placeholderForCreatedAsset: placeholder
                            )
                        }
                    } catch PHPhotosError.notEnoughSpace {
                        exit(0)
                    } catch {}
                    exit(1)
                }
                unsetenv("SAFELIGHT_RUN")
                #expect(PHAsset.fetchAssets(with: nil).isEmpty)
            }
        }

        @Test(.spec("S-89", "T-23"))
        func `the render that was written last is committed, whichever type was requested`() async throws {
            try await LibraryFixture.with("render", services: [.catalog]) { _ in
                let photo = Data(TestImages.jpeg(width: 64, height: 48))
                let jpeg = Data(TestImages.jpeg(width: 40, height: 30))
                let png = Data(TestImages.png(width: 20, height: 10) { _, _ in (1, 2, 3, 255) })
                /// Creates an asset with an edit, and returns its size and type.
                func commit(_ write: (PHContentEditingOutput) throws -> Void) throws -> String {
                    var id = ""
                    try PHPhotoLibrary.shared().performChangesAndWait {
                        let request = PHAssetCreationRequest.forAsset()
                        request.addResource(with: .photo, data: photo, options: nil)
                        guard let placeholder = request.placeholderForCreatedAsset else { return }
                        let output = PHContentEditingOutput(placeholderForCreatedAsset: placeholder)
                        output.adjustmentData = PHAdjustmentData(
                            formatIdentifier: "x",
                            formatVersion: "1",
                            data: Data([1])
                        )
                        do { try write(output) } catch { Issue.record(error) }
                        request.contentEditingOutput = output
                        id = placeholder.localIdentifier
                    }
                    let asset = try #require(
                        PHAsset.fetchAssets(withLocalIdentifiers: [id], options: nil).firstObject
                    )
                    return "\(asset.pixelWidth) \(asset.contentType)"
                }
                // The program requested the file of another type, and did not write it.
                let other = try commit { output in
                    _ = try output.renderedContentURL(for: "public.heic")
                    try jpeg.write(to: output.renderedContentURL)
                }
                #expect(other == "40 public.jpeg")
                let early = try commit { output in
                    let url = output.renderedContentURL
                    _ = try output.renderedContentURL(for: "public.png")
                    try jpeg.write(to: url)
                }
                #expect(early == "40 public.jpeg")
                // The program wrote only a part of the file of another type.
                let half = try commit { output in
                    try png.prefix(20).write(to: try output.renderedContentURL(for: "public.png"))
                    try jpeg.write(to: output.renderedContentURL)
                }
                #expect(half == "40 public.jpeg")
                let last = try commit { output in
                    try jpeg.write(to: output.renderedContentURL)
                    try png.write(to: try output.renderedContentURL(for: "public.png"))
                }
                #expect(last == "20 public.png")
                let none = #expect(throws: PHPhotosError.self) {
                    try commit { _ = try $0.renderedContentURL(for: "public.png") }
                }
                #expect(none?.code == .missingResource)
            }
        }

        @Test(.spec("T-11", "T-26", "T-49"))
        func `either of a RAW and a compressed original can be edited and displayed`() async throws {
            try await LibraryFixture.with("pair") { _ in
                let library = PHPhotoLibrary.shared()
                let single = try #require(try LibraryFixture.importImages(1).first)
                let raw = Data(TestRaw.dng(width: 120, height: 80))
                var id = ""
                try await library.performChanges {
                    let request = PHAssetCreationRequest.forAsset()
                    request.addResource(with: .photo, data: Data(TestImages.jpeg()), options: nil)
                    let options = PHAssetResourceCreationOptions()
                    options.originalFilename = "pair.dng"
                    options.uniformTypeIdentifier = "com.adobe.raw-image"
                    request.addResource(with: .alternatePhoto, data: raw, options: options)
                    id = request.placeholderForCreatedAsset?.localIdentifier ?? ""
                }
                func fetchAgain() throws -> PHAsset {
                    try #require(PHAsset.fetchAssets(withLocalIdentifiers: [id], options: nil).firstObject)
                }
                let pair = try fetchAgain()
                #expect(pair.originalResourceChoice == .compressed && pair.contentType == "public.jpeg")
                let displayed = try await pair.contentEditingInput()
                #expect(displayed.uniformTypeIdentifier == "public.jpeg" && displayed.displaySizeImage != nil)

                let options = PHContentEditingInputRequestOptions()
                options.originalResourceChoice = .raw
                options.skipsDisplaySizeImage = true
                let inputs = Recorded<PHContentEditingInput?>()
                pair.requestContentEditingInput(with: options) { input, _ in inputs.add(input) }
                let delivered = try #require(await inputs.next().flatMap { $0 })
                let returned = try await pair.contentEditingInput(with: options)
                for input in [delivered, returned] {
                    #expect(input.uniformTypeIdentifier == "com.adobe.raw-image" && input.displaySizeImage == nil)
                    #expect(try input.fullSizeImageURL.map { try Data(contentsOf: $0) } == raw)
                }
                let refused = await #expect(throws: PHPhotosError.self) {
                    try await single.contentEditingInput(with: options)
                }
                #expect(refused?.name == "invalid_options")

                try await library.performChanges { PHAssetChangeRequest(for: pair).revertAssetContent(to: .raw) }
                let reverted = try fetchAgain()
                #expect(reverted.originalResourceChoice == .raw && reverted.contentType == "com.adobe.raw-image")
                try await library.performChanges { PHAssetChangeRequest(for: pair).revertAssetContentToOriginal() }
                #expect(try fetchAgain().originalResourceChoice == .raw)
                let unsupported = await #expect(throws: PHPhotosError.self) {
                    try await library.performChanges { PHAssetChangeRequest(for: single).revertAssetContent(to: .raw) }
                }
                #expect(unsupported?.code == .requestNotSupportedForAsset)
            }
        }

        @Test(.spec("T-45"))
        func `images are in high dynamic range if that is preferred`() async throws {
            let photo = try #require(
                try Needed.photographs(["heic"]).first { $0.lastPathComponent == "iphone_13_pro_max.HEIC" }
            )
            let ffprobe = try Needed.program("ffprobe")
            try await LibraryFixture.with("hdr") { fixture in
                try await PHPhotoLibrary.shared().performChanges {
                    _ = PHAssetChangeRequest.creationRequestForAssetFromImage(atFileURL: photo)
                }
                let asset = try #require(PHAsset.fetchAssets(with: nil).firstObject)
                let options = PHImageRequestOptions()
                options.format = .avif
                for (prefersHDR, transfer) in [(false, "iec61966-2-1"), (true, "smpte2084")] {
                    options.preferHDR = prefersHDR
                    let size = CGSize(width: 128, height: 128)
                    let image = try await PHImageManager.default().image(for: asset, targetSize: size, options: options)
                    let file = fixture.folder.file("\(prefersHDR).avif")
                    try image.data.write(to: URL(filePath: file))
                    let entries = ["-v", "error", "-show_entries", "stream=color_transfer", "-of", "csv=p=0", file]
                    #expect(try RunningProgram.run(ffprobe, entries, seconds: 30).output.contains(transfer))
                }
            }
        }

        @Test(.spec("S-43", "S-44", "D12"))
        func `images have the requested size, format and part, and failures have named errors`() async throws {
            try await LibraryFixture.with("sizes") { _ in
                let asset = try #require(try LibraryFixture.importImages(1, width: 400, height: 300).first)
                let manager = PHImageManager.default()
                let options = PHImageRequestOptions()
                options.resizeMode = .exact
                let size = CGSize(width: 90, height: 90)
                let filled = try await manager.image(
                    for: asset,
                    targetSize: size,
                    contentMode: .aspectFill,
                    options: options
                )
                #expect(filled.size == size)
                let pixels = try #require(filled.pixels())
                // The quadrants of the test image: red at the upper left.
                let corner = pixels[5, 5]
                #expect(corner.red > 150 && corner.green < 80 && corner.blue < 80)
                let small = try #require(filled.jpegData(compressionQuality: 0.1))
                #expect(small.count < filled.data.count && UIImage(data: small)?.size == size)
                options.normalizedCropRect = CGRect(x: 0.5, y: 0, width: 0.5, height: 0.5)
                options.format = .png
                let part = try await manager.image(
                    for: asset,
                    targetSize: size,
                    contentMode: .aspectFill,
                    options: options
                )
                #expect(part.contentType == "public.png" && part.jpegData(compressionQuality: 1) == nil)
                options.resizeMode = .fast
                do {
                    _ = try await manager.image(for: asset, targetSize: size, options: options)
                    Issue.record("a part needs resizeMode exact")
                } catch let error as PHPhotosError {
                    #expect(error.name == "invalid_options")
                }
                try await PHPhotoLibrary.shared().performChanges { PHAssetChangeRequest.deleteAssets([asset]) }
                let failed = Recorded<PHPhotosError?>()
                manager.requestImage(for: asset, targetSize: size, contentMode: .default, options: nil) { image, info in
                    failed.add(info?[PHImageErrorKey] as? PHPhotosError)
                }
                #expect(try await Self.nextError(failed)?.code == .identifierNotFound)
                #expect(UIImage(data: Data("not an image".utf8)) == nil)
            }
        }
    }
}

import Foundation
import PhotoKit
import TestSupport
import Testing

extension PhotoKitTests {
    /// Requests that create assets: the keywords in their files, and files that are moved into the library.
    @Suite(.serialized, .timeLimit(.minutes(5)))
    struct NewAssets {
        @Test(.spec("T-27"))
        func `keywords are added to those of a new file, and the last call for a keyword decides`() async throws {
            try await LibraryFixture.with("keywords", services: [.catalog]) { fixture in
                let words = "<rdf:Bag><rdf:li>sea</rdf:li><rdf:li>sun</rdf:li></rdf:Bag>"
                let subject =
                    #"xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject>\#(words)</dc:subject>"#
                    + #"</rdf:Description><rdf:Description rdf:about="""#
                let photo = TestImages.jpeg(
                    width: 64,
                    height: 48,
                    orientation: 1,
                    exif: nil,
                    segments: [TestImages.xmpSegment(subject)]
                )
                let file = URL(fileURLWithPath: try fixture.folder.write(photo, to: "sea.jpg"))
                /// Creates an asset of the file, and returns its keywords in alphabetical order.
                func keywords(_ change: (PHAssetChangeRequest) -> Void) throws -> [String] {
                    var id = ""
                    try PHPhotoLibrary.shared().performChangesAndWait {
                        guard let request = PHAssetChangeRequest.creationRequestForAssetFromImage(atFileURL: file)
                        else { return }
                        change(request)
                        id = request.placeholderForCreatedAsset?.localIdentifier ?? ""
                    }
                    let created = PHAsset.fetchAssets(withLocalIdentifiers: [id], options: nil).firstObject
                    return try #require(created).keywords.sorted()
                }
                #expect(try keywords { _ in } == ["sea", "sun"])
                #expect(try keywords { $0.addKeyword("trip") } == ["sea", "sun", "trip"])
                #expect(try keywords { $0.removeKeyword("sun") } == ["sea"])
                let replaced = try keywords { request in
                    request.addKeyword("trip")
                    request.removeKeyword("sun")
                    request.removeKeyword("absent")
                    request.addKeyword("sea")
                }
                #expect(replaced == ["sea", "trip"])
                let lastCalls: (PHAssetChangeRequest) -> Void = { request in
                    request.addKeyword("x")
                    request.removeKeyword("x")
                    request.removeKeyword("sea")
                    request.addKeyword("sea")
                }
                #expect(try keywords(lastCalls) == ["sea", "sun"])

                // The calls have the same effect on an existing asset.
                let asset = try #require(PHAsset.fetchAssets(with: nil).firstObject)
                try PHPhotoLibrary.shared().performChangesAndWait { lastCalls(PHAssetChangeRequest(for: asset)) }
                let now = PHAsset.fetchAssets(with: nil).firstObject
                #expect(now?.keywords.sorted() == ["sea", "sun"])
            }
        }

        // MARK: Moved files

        /// Adds requests that move files into the library.
        private static func move(_ paths: [String]) {
            for path in paths {
                let options = PHAssetResourceCreationOptions()
                options.shouldMoveFile = true
                let request = PHAssetCreationRequest.forAsset()
                request.addResource(with: .photo, fileURL: URL(fileURLWithPath: path), options: options)
            }
        }

        /// Changes a byte in the middle of a file, but not its size and times.
        private static func corrupt(_ path: String) throws {
            var status = stat()
            try #require(stat(path, &status) == 0)
            chmod(path, 0o644)
            let file = open(path, O_RDWR)
            try #require(file >= 0)
            defer { close(file) }
            var byte: [UInt8] = [0]
            #expect(pread(file, &byte, 1, off_t(status.st_size / 2)) == 1)
            byte[0] ^= 0xFF
            #expect(pwrite(file, byte, 1, off_t(status.st_size / 2)) == 1)
            var times = [status.st_atim, status.st_mtim]
            #expect(futimens(file, &times) == 0)
        }

        @Test(.spec("T-21"))
        func `a file is moved in only after a damaged copy in the library was repaired`() async throws {
            try await LibraryFixture.with("repair", services: [.catalog]) { fixture in
                let library = PHPhotoLibrary.shared()
                // The first file is attached to the request, and the second one is uploaded before it.
                for bytes in [TestImages.jpeg(seed: 1), TestImages.jpeg(mebibytesAfter: 7, seed: 2)] {
                    let first = URL(fileURLWithPath: try fixture.folder.write(bytes, to: "first.jpg"))
                    var id = ""
                    try library.performChangesAndWait {
                        let request = PHAssetChangeRequest.creationRequestForAssetFromImage(atFileURL: first)
                        id = request?.placeholderForCreatedAsset?.localIdentifier ?? ""
                    }
                    let asset = try #require(
                        PHAsset.fetchAssets(withLocalIdentifiers: [id], options: nil).firstObject
                    )
                    let digest = try #require(PHAssetResource.assetResources(for: asset).first).digest
                    let path = "\(digest.prefix(2))/\(digest.dropFirst(2).prefix(2))/\(digest)"
                    let stored = fixture.folder.file("library/resources/\(path)")
                    try Self.corrupt(stored)
                    #expect(try Data(contentsOf: URL(fileURLWithPath: stored)) != Data(bytes))

                    let second = try fixture.folder.write(bytes, to: "second.jpg")
                    try await library.performChanges { Self.move([second]) }
                    #expect(!FileManager.default.fileExists(atPath: second))
                    let copy = try Data(contentsOf: URL(fileURLWithPath: stored))
                    #expect(copy == Data(bytes), "the last intact copy was removed")
                }
            }
        }

        @Test(.spec("T-21", "S-13"))
        func `a file that is changed or replaced while the owner is asked for consent is not removed`() async throws {
            let network = try NetworkFixture("pk-replaced")
            let services = network.services
            let configuration = try network.configuration(
                key: "ann",
                access: "readWrite",
                client: "ann's program",
                purpose: "imports photos"
            )
            let always = ["grants", "approve", "ann", "--access", "readWrite", "--consent", "always"]
            try #require(try services.safelight(always).status == 0)
            let library = try PHPhotoLibrary.connect(configuration)
            let folder = try TemporaryFolder("replaced")
            let paths = try (1...3).map { try folder.write(TestImages.jpeg(seed: UInt64($0)), to: "IMG_\($0).jpg") }
            let change = Task { try await library.performChanges { Self.move(paths) } }
            var grant: Substring?
            while grant == nil, !Task.isCancelled {
                let pending = try services.safelight(["grants", "pending"]).output
                grant = pending.split(separator: "\n").first { $0.contains(" wants: ") }?.split(separator: " ").first
            }

            // Another photo gets the name of the first one, and the second one is saved again.
            let (other, saved) = (Data(TestImages.jpeg(seed: 8)), Data(TestImages.jpeg(seed: 9)))
            try other.write(to: URL(fileURLWithPath: folder.file("other.jpg")))
            #expect(rename(folder.file("other.jpg"), paths[0]) == 0)
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: paths[1]))
            try file.truncate(atOffset: 0)
            try file.write(contentsOf: saved)
            try file.close()
            try #require(try services.safelight(["grants", "approve", String(grant ?? "")]).status == 0)
            try await change.value

            #expect(try Data(contentsOf: URL(fileURLWithPath: paths[0])) == other)
            #expect(try Data(contentsOf: URL(fileURLWithPath: paths[1])) == saved)
            #expect(!FileManager.default.fileExists(atPath: paths[2]))
            #expect(PHAsset.fetchAssets(with: nil).count == 3)
            await library.close()
            #expect(network.services.stop() == [])
        }

        @Test(.spec("T-21"))
        func `a file with other hard links is not moved, and a pipe or missing file is refused at once`() async throws {
            try await LibraryFixture.with("links", services: [.catalog]) { fixture in
                let library = PHPhotoLibrary.shared()
                let path = try fixture.folder.write(TestImages.jpeg(), to: "linked.jpg")
                #expect(link(path, fixture.folder.file("other.jpg")) == 0)
                let pipe = fixture.folder.file("pipe.jpg")
                #expect(mkfifo(pipe, 0o600) == 0)
                let missing = fixture.folder.file("missing.jpg")
                let refusals: [(path: String, code: PHPhotosError.Code)] = [
                    (path, .invalidResource), (pipe, .missingResource), (missing, .missingResource),
                ]
                for (path, code) in refusals {
                    let refused = await #expect(throws: PHPhotosError.self) {
                        try await library.performChanges { Self.move([path]) }
                    }
                    #expect(refused?.code == code)
                }
                #expect(FileManager.default.fileExists(atPath: path) && PHAsset.fetchAssets(with: nil).isEmpty)
            }
        }
    }
}

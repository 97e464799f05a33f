import Contracts
import Hosting
import Imaging
import JSONValue
import Metadata
import PhotoClient
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Editor

extension EditorWorkerTests {
    @Suite(.timeLimit(.minutes(5)))
    struct EditTests {
        private let grey = AdjustmentList(operations: [.blackAndWhite(1)])
        private let bright = AdjustmentList(operations: [.exposure(1)])

        private func list(_ adjustments: Adjustment...) -> AdjustmentList { AdjustmentList(operations: adjustments) }

        @Test func `an edit is one change with an upright render, adjustment data and camera metadata`() async throws {
            try await EditorFixture.open { fixture in
                let original = TestImages.jpeg(
                    width: 300,
                    height: 200,
                    orientation: 6,
                    date: "2024:06:01 12:30:00",
                    offset: "+02:00",
                    latitude: 47.5,
                    longitude: 8.5
                )
                let asset = try fixture.catalog.add(original)
                let adjustments = list(.exposure(0.5), .rotate(.quarter))
                let outcome = try await fixture.ask(
                    ApplyEdit(asset: asset.id, adjustments: adjustments, client: "script")
                )
                #expect(outcome.isChanged)
                #expect(outcome.sequence == fixture.catalog.sequence)
                let after = try #require(fixture.catalog.asset(asset.id))
                #expect(after.contentRevision == Revision(outcome.sequence))
                #expect(after.adjustmentFormatIdentifier == AdjustmentList.formatIdentifier)
                #expect(try fixture.bytes(asset.id, .adjustmentData) == adjustments.json.bytes)
                #expect(try fixture.bytes(asset.id, .photo) == original)
                let render = try fixture.bytes(asset.id, .fullSizePhoto)
                let info = try ImageProbe.info(of: render)
                #expect(info.pixelWidth == 200 && info.pixelHeight == 300 && info.orientation == 1)
                let (before, rendered) = (try MetadataReader.facts(of: original), try MetadataReader.facts(of: render))
                #expect(rendered.captureDate == before.captureDate)
                #expect(rendered.captureDate != nil)
                #expect(rendered.location == before.location)
                #expect(rendered.location != nil)
                #expect(fixture.commits.count == 1)
                #expect(fixture.commits.first?.client == "script")
                #expect(fixture.commits.first?.onBehalfOf?.hasPrefix("uid:") == true)
            }
        }

        @Test func `replacing starts again and appending continues, both from the original`() async throws {
            try await EditorFixture.open { fixture in
                let bytes = TestImages.jpeg(width: 90, height: 60)
                let (first, second) = (try fixture.catalog.add(bytes), try fixture.catalog.add(bytes))
                _ = try await fixture.ask(ApplyEdit(asset: first.id, adjustments: grey))
                let greyRender = try fixture.bytes(first.id, .fullSizePhoto)
                _ = try await fixture.ask(ApplyEdit(asset: first.id, adjustments: bright))
                _ = try await fixture.ask(ApplyEdit(asset: second.id, adjustments: bright))
                let brightRender = try fixture.bytes(first.id, .fullSizePhoto)
                #expect(try fixture.bytes(second.id, .fullSizePhoto) == brightRender, "the first edit is replaced")
                #expect(brightRender != greyRender)
                _ = try await fixture.ask(ApplyEdit(asset: first.id, adjustments: grey, mode: .append))
                let both = AdjustmentList(operations: bright.operations + grey.operations)
                _ = try await fixture.ask(ApplyEdit(asset: second.id, adjustments: both))
                #expect(try fixture.bytes(first.id, .adjustmentData) == both.json.bytes)
                #expect(
                    try fixture.bytes(first.id, .fullSizePhoto) == fixture.bytes(second.id, .fullSizePhoto),
                    "appended operations equal one list, byte for byte"
                )
            }
        }

        @Test func `another program's edit cannot be extended, and replacing starts from its render`() async throws {
            try await EditorFixture.open { fixture in
                let bytes = TestImages.jpeg(width: 90, height: 60, seed: 1)
                let asset = try fixture.catalog.add(bytes)
                let otherRender = TestImages.jpeg(width: 90, height: 60, seed: 2)
                let theirs = try fixture.resources.put(bytes: otherRender)
                fixture.catalog.change(asset.id, content: true) { asset in
                    asset.adjustmentFormatIdentifier = "com.example.other"
                    asset.adjustmentFormatVersion = "3"
                    asset.resources.append(
                        AssetResource(
                            type: .fullSizePhoto,
                            digest: theirs.digest.text,
                            size: theirs.size,
                            contentType: "public.jpeg"
                        )
                    )
                }
                let refusal = await fixture.rpcError(ApplyEdit(asset: asset.id, adjustments: grey, mode: .append))
                #expect(refusal?.errorCode == .requestNotSupported)
                #expect(refusal?.message.contains("com.example.other 3") == true)
                _ = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                let after = try #require(fixture.catalog.asset(asset.id))
                #expect(after.resource(.adjustmentBasePhoto)?.digest == theirs.digest.text)
                let other = try fixture.catalog.add(otherRender)
                _ = try await fixture.ask(ApplyEdit(asset: other.id, adjustments: grey))
                #expect(try fixture.bytes(asset.id, .fullSizePhoto) == fixture.bytes(other.id, .fullSizePhoto))
                _ = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: bright, mode: .append))
            }
        }

        @Test func `concurrent edits of one asset all take effect`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<10 {
                        group.addTask {
                            _ = try await fixture.ask(
                                ApplyEdit(asset: asset.id, adjustments: list(.exposure(0.1)), mode: .append)
                            )
                        }
                    }
                    try await group.waitForAll()
                }
                let data = try JSON(parsing: fixture.bytes(asset.id, .adjustmentData))
                #expect(try AdjustmentList(json: data).operations.count == 10)
                #expect(fixture.commits.count == 10, "no render was wasted")
            }
        }

        @Test func `an edit without a precondition is rendered again after a conflict`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                let disturbances = Box(2)
                fixture.catalog.callBeforeResponse { catalog, method in
                    guard method == PerformChanges.method, disturbances.value > 0 else { return }
                    disturbances.value -= 1
                    catalog.change(asset.id, content: true) { $0.isFavorite.toggle() }
                }
                _ = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                #expect(fixture.commits.count == 3)
                disturbances.value = 3
                let refusal = await fixture.rpcError(ApplyEdit(asset: asset.id, adjustments: bright))
                #expect(refusal?.errorCode == .conflict)
                #expect(fixture.commits.count == 6)
            }
        }

        @Test func `with a precondition the first conflict is returned, with the current revision`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                var edit = ApplyEdit(
                    asset: asset.id,
                    adjustments: grey,
                    ifContentRevision: asset.contentRevision
                )
                fixture.catalog.change(asset.id, content: false) { $0.isFavorite = true }
                _ = try await fixture.ask(edit)
                let refusal = await fixture.rpcError(edit)
                let revision = try #require(fixture.catalog.asset(asset.id)?.contentRevision)
                #expect(refusal?.errorCode == .conflict)
                #expect(refusal?.data["contentRevision"]?.stringValue == revision.description)
                #expect(fixture.commits.count == 1, "the conflict was found before rendering")
                edit.ifContentRevision = revision
                let isDone = Box(false)
                fixture.catalog.callBeforeResponse { catalog, method in
                    guard method == PerformChanges.method, !isDone.value else { return }
                    isDone.value = true
                    catalog.change(asset.id, content: true) { $0.isFavorite = false }
                }
                #expect(await fixture.rpcError(edit)?.errorCode == .conflict)
                #expect(fixture.commits.count == 2)
            }
        }

        @Test func `a large render is uploaded before its transaction`() async throws {
            try await EditorFixture.open {
                $0.largestAttachment = 100
            } _: { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 300, height: 200))
                _ = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                #expect(fixture.catalog.count(FinishUpload.method) == 1)
                #expect(try ImageProbe.info(of: fixture.bytes(asset.id, .fullSizePhoto)).pixelWidth == 300)
            }
        }

        @Test
        func `a render whose upload the catalog has lost is rendered and uploaded again, even with a precondition`()
            async throws
        {
            try await EditorFixture.open {
                $0.largestAttachment = 100
            } _: { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                fixture.catalog.fail(PerformChanges.method, ErrorCode.handleExpired.error("there is no upload"))
                let edit = ApplyEdit(asset: asset.id, adjustments: grey, ifContentRevision: asset.contentRevision)
                #expect(try await fixture.ask(edit).isChanged)
                #expect(fixture.catalog.count(FinishUpload.method) == 2)
                #expect(fixture.editor.metrics.conflicts.total == 0)
            }
        }

        @Test func `a preview is small and changes nothing`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 300, height: 200, orientation: 8))
                let preview = try await fixture.client.ask(
                    PreviewEdit(asset: asset.id, adjustments: grey, maximumSide: 90)
                )
                #expect(preview.result.pixelWidth == 90 && preview.result.pixelHeight == 60)
                #expect(preview.result.sequence == 1)
                let info = try ImageProbe.info(of: preview.attachments[0])
                #expect(info.pixelWidth == 90 && info.pixelHeight == 60)
                #expect(fixture.catalog.performed.isEmpty)
            }
        }

        @Test func `reverting restores the original`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                _ = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                let stale = RevertEdit(asset: asset.id, ifContentRevision: asset.contentRevision)
                #expect(await fixture.rpcError(stale)?.errorCode == .conflict)
                let outcome = try await fixture.ask(RevertEdit(asset: asset.id))
                #expect(outcome.isChanged)
                let after = try #require(fixture.catalog.asset(asset.id))
                #expect(after.resources.map(\.type) == [.photo])
                #expect(!after.hasAdjustments)
                #expect(try await !fixture.ask(RevertEdit(asset: asset.id)).isChanged)
            }
        }

        @Test func `every failure has its error name`() async throws {
            try await EditorFixture.open { fixture in
                let text = try fixture.catalog.add(Array("not an image, only words".utf8))
                let cut = try fixture.catalog.add(Array(TestImages.jpeg(width: 300, height: 200).prefix(3000)))
                let video = try fixture.catalog.add([1]) { $0.mediaType = .video }
                func rpcError(_ id: ObjectID) async -> ErrorCode? {
                    await fixture.rpcError(ApplyEdit(asset: id, adjustments: grey))?.errorCode
                }
                #expect(await rpcError(text.id) == .unsupportedFormat)
                #expect(await rpcError(cut.id) == .invalidResource)
                #expect(await rpcError(video.id) == .missingResource)
                #expect(await rpcError(.none) == .identifierNotFound)
                #expect(
                    await fixture.rpcError(PreviewEdit(asset: .none, adjustments: grey))?.errorCode
                        == .identifierNotFound
                )
                #expect(fixture.catalog.performed.isEmpty)
                let health = try await fixture.client.health()
                #expect(health.isHealthy)
                fixture.catalog.setHealthy(false)
                #expect(try await !fixture.client.health().isHealthy)
                let metrics = try await fixture.client.metrics()
                #expect(metrics["renderFailures"] == 2)
                #expect(metrics["workers"]?["workers"] == 2)
            }
        }

        @Test func `an image requested after an edit never shows the state before it`() async throws {
            try await EditorFixture.open(withThumbnailer: true) { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 300, height: 200))
                var image = ImageRequest(asset: asset.id, targetSize: .size(width: 60, height: 60), resizeMode: .exact)
                var last = try await fixture.images.ask(image)
                for quarter in 1...4 {
                    let turns = AdjustmentList(
                        operations: Array(repeating: .rotate(.quarter), count: quarter) + [.exposure(Double(quarter))]
                    )
                    let outcome = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: turns))
                    image.atLeast = outcome.token
                    let next = try await fixture.images.ask(image)
                    #expect(next.result.contentRevision == Revision(outcome.sequence))
                    #expect(next.result.pixelWidth == (quarter % 2 == 0 ? 60 : 40))
                    #expect(next.attachments != last.attachments)
                    last = next
                }
            }
        }
    }
}

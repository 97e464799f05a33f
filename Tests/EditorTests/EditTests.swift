import Contracts
import Imaging
import JSONValue
import Messaging
import Metadata
import PhotoClient
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Editor

extension StudioTests {
    @Suite(.timeLimit(.minutes(5)))
    struct EditTests {
        private let grey = AdjustmentList(operations: [.blackAndWhite(1)])
        private let bright = AdjustmentList(operations: [.exposure(1)])

        private func list(_ adjustments: Adjustment...) -> AdjustmentList { AdjustmentList(operations: adjustments) }

        @Test func `an edit is one change with an upright render, adjustment data and camera metadata`() async throws {
            try await Studio.open { studio in
                let original = TestPictures.jpeg(
                    width: 300,
                    height: 200,
                    orientation: 6,
                    date: "2024:06:01 12:30:00",
                    offset: "+02:00",
                    latitude: 47.5,
                    longitude: 8.5
                )
                let asset = try studio.catalog.add(original)
                let adjustments = list(.exposure(0.5), .rotate(.quarter))
                let outcome = try await studio.ask(
                    ApplyEdit(asset: asset.id, adjustments: adjustments, client: "script")
                )
                #expect(outcome.isChanged)
                #expect(outcome.sequence == studio.catalog.sequence)
                let after = try #require(studio.catalog.asset(asset.id))
                #expect(after.contentRevision == Revision(outcome.sequence))
                #expect(after.adjustmentFormatIdentifier == AdjustmentList.formatIdentifier)
                #expect(try studio.bytes(asset.id, .adjustmentData) == adjustments.json.bytes)
                #expect(try studio.bytes(asset.id, .photo) == original)
                let render = try studio.bytes(asset.id, .fullSizePhoto)
                let info = try Picture.info(of: render)
                #expect(info.pixelWidth == 200 && info.pixelHeight == 300 && info.orientation == 1)
                let (before, kept) = (try MetadataReader.facts(of: original), try MetadataReader.facts(of: render))
                #expect(kept.captureDate == before.captureDate)
                #expect(kept.captureDate != nil)
                #expect(kept.location == before.location)
                #expect(kept.location != nil)
                #expect(studio.commits.count == 1)
                #expect(studio.commits.first?.client == "script")
                #expect(studio.commits.first?.onBehalfOf?.hasPrefix("uid:") == true)
            }
        }

        @Test func `replacing starts again and appending continues, both from the original`() async throws {
            try await Studio.open { studio in
                let bytes = TestPictures.jpeg(width: 90, height: 60)
                let (first, second) = (try studio.catalog.add(bytes), try studio.catalog.add(bytes))
                _ = try await studio.ask(ApplyEdit(asset: first.id, adjustments: grey))
                let greyRender = try studio.bytes(first.id, .fullSizePhoto)
                _ = try await studio.ask(ApplyEdit(asset: first.id, adjustments: bright))
                _ = try await studio.ask(ApplyEdit(asset: second.id, adjustments: bright))
                let brightRender = try studio.bytes(first.id, .fullSizePhoto)
                #expect(try studio.bytes(second.id, .fullSizePhoto) == brightRender, "the first edit is replaced")
                #expect(brightRender != greyRender)
                _ = try await studio.ask(ApplyEdit(asset: first.id, adjustments: grey, mode: .append))
                let both = AdjustmentList(operations: bright.operations + grey.operations)
                _ = try await studio.ask(ApplyEdit(asset: second.id, adjustments: both))
                #expect(try studio.bytes(first.id, .adjustmentData) == both.json.bytes)
                #expect(
                    try studio.bytes(first.id, .fullSizePhoto) == studio.bytes(second.id, .fullSizePhoto),
                    "appended operations equal one list, byte for byte"
                )
            }
        }

        @Test func `another program's edit cannot be extended and is replaced from the original`() async throws {
            try await Studio.open { studio in
                let bytes = TestPictures.jpeg(width: 90, height: 60, seed: 1)
                let asset = try studio.catalog.add(bytes)
                let theirs = try studio.resources.put(bytes: TestPictures.jpeg(width: 90, height: 60, seed: 2))
                studio.catalog.change(asset.id, content: true) { asset in
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
                let refusal = await studio.refusal(ApplyEdit(asset: asset.id, adjustments: grey, mode: .append))
                #expect(refusal?.refusal == .requestNotSupported)
                #expect(refusal?.message.contains("com.example.other 3") == true)
                _ = try await studio.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                let after = try #require(studio.catalog.asset(asset.id))
                #expect(after.resource(.adjustmentBasePhoto) == nil)
                let other = try studio.catalog.add(bytes)
                _ = try await studio.ask(ApplyEdit(asset: other.id, adjustments: grey))
                #expect(try studio.bytes(asset.id, .fullSizePhoto) == studio.bytes(other.id, .fullSizePhoto))
                _ = try await studio.ask(ApplyEdit(asset: asset.id, adjustments: bright, mode: .append))
            }
        }

        @Test func `concurrent edits of one asset all take effect`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 60, height: 40))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<10 {
                        group.addTask {
                            _ = try await studio.ask(
                                ApplyEdit(asset: asset.id, adjustments: list(.exposure(0.1)), mode: .append)
                            )
                        }
                    }
                    try await group.waitForAll()
                }
                let data = try JSON(parsing: studio.bytes(asset.id, .adjustmentData))
                #expect(try AdjustmentList(json: data).operations.count == 10)
                #expect(studio.commits.count == 10, "no render was wasted")
            }
        }

        @Test func `an edit without a precondition is rendered again after a conflict`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 60, height: 40))
                let disturbances = Box(2)
                studio.catalog.before { catalog, method in
                    guard method == PerformChanges.method, disturbances.value > 0 else { return }
                    disturbances.value -= 1
                    catalog.change(asset.id, content: true) { $0.isFavorite.toggle() }
                }
                _ = try await studio.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                #expect(studio.commits.count == 3)
                disturbances.value = 3
                let refusal = await studio.refusal(ApplyEdit(asset: asset.id, adjustments: bright))
                #expect(refusal?.refusal == .conflict)
                #expect(studio.commits.count == 6)
            }
        }

        @Test func `with a precondition the first conflict is returned, with the present revision`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 60, height: 40))
                var edit = ApplyEdit(
                    asset: asset.id,
                    adjustments: grey,
                    ifContentRevision: asset.contentRevision
                )
                studio.catalog.change(asset.id, content: false) { $0.isFavorite = true }
                _ = try await studio.ask(edit)
                let refusal = await studio.refusal(edit)
                let revision = try #require(studio.catalog.asset(asset.id)?.contentRevision)
                #expect(refusal?.refusal == .conflict)
                #expect(refusal?.data["contentRevision"]?.stringValue == revision.description)
                #expect(studio.commits.count == 1, "the conflict was found before rendering")
                edit.ifContentRevision = revision
                let isDone = Box(false)
                studio.catalog.before { catalog, method in
                    guard method == PerformChanges.method, !isDone.value else { return }
                    isDone.value = true
                    catalog.change(asset.id, content: true) { $0.isFavorite = false }
                }
                #expect(await studio.refusal(edit)?.refusal == .conflict)
                #expect(studio.commits.count == 2)
            }
        }

        @Test func `a large render is uploaded before its transaction`() async throws {
            try await Studio.open {
                $0.largestAttachment = 100
            } _: { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 300, height: 200))
                _ = try await studio.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                #expect(studio.catalog.count(FinishUpload.method) == 1)
                #expect(try Picture.info(of: studio.bytes(asset.id, .fullSizePhoto)).pixelWidth == 300)
            }
        }

        @Test func `a preview is small and changes nothing`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 300, height: 200, orientation: 8))
                let answer = try await studio.client.ask(
                    PreviewEdit(asset: asset.id, adjustments: grey, maximumSide: 90)
                )
                #expect(answer.result.pixelWidth == 90 && answer.result.pixelHeight == 60)
                #expect(answer.result.sequence == 1)
                let info = try Picture.info(of: answer.attachments[0])
                #expect(info.pixelWidth == 90 && info.pixelHeight == 60)
                #expect(studio.catalog.performed.isEmpty)
            }
        }

        @Test func `reverting restores the original`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 60, height: 40))
                _ = try await studio.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                let stale = RevertEdit(asset: asset.id, ifContentRevision: asset.contentRevision)
                #expect(await studio.refusal(stale)?.refusal == .conflict)
                let outcome = try await studio.ask(RevertEdit(asset: asset.id))
                #expect(outcome.isChanged)
                let after = try #require(studio.catalog.asset(asset.id))
                #expect(after.resources.map(\.type) == [.photo])
                #expect(!after.hasAdjustments)
                #expect(try await !studio.ask(RevertEdit(asset: asset.id)).isChanged)
            }
        }

        @Test func `every failure has its error name`() async throws {
            try await Studio.open { studio in
                let text = try studio.catalog.add(Array("no picture at all, only words".utf8))
                let cut = try studio.catalog.add(Array(TestPictures.jpeg(width: 300, height: 200).prefix(3000)))
                let video = try studio.catalog.add([1]) { $0.mediaType = .video }
                func refusal(_ id: ObjectID) async -> Refusal? {
                    await studio.refusal(ApplyEdit(asset: id, adjustments: grey))?.refusal
                }
                #expect(await refusal(text.id) == .unsupportedFormat)
                #expect(await refusal(cut.id) == .invalidResource)
                #expect(await refusal(video.id) == .missingResource)
                #expect(await refusal(.none) == .identifierNotFound)
                #expect(
                    await studio.refusal(PreviewEdit(asset: .none, adjustments: grey))?.refusal == .identifierNotFound
                )
                #expect(studio.catalog.performed.isEmpty)
                let health = try await studio.client.health()
                #expect(health.isHealthy)
                studio.catalog.setHealthy(false)
                #expect(try await !studio.client.health().isHealthy)
                let figures = try await studio.client.figures()
                #expect(figures["renderFailures"] == 2)
                #expect(figures["workers"]?["workers"] == 2)
            }
        }

        @Test func `an image requested after an edit never shows the state before it`() async throws {
            try await Studio.open(withThumbnailer: true) { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 300, height: 200))
                var image = ImageRequest(asset: asset.id, targetSize: .size(width: 60, height: 60), resizeMode: .exact)
                var last = try await studio.pictures.ask(image)
                for quarter in 1...4 {
                    let turns = AdjustmentList(
                        operations: Array(repeating: .rotate(.quarter), count: quarter) + [.exposure(Double(quarter))]
                    )
                    let outcome = try await studio.ask(ApplyEdit(asset: asset.id, adjustments: turns))
                    image.atLeast = outcome.token
                    let next = try await studio.pictures.ask(image)
                    #expect(next.result.contentRevision == Revision(outcome.sequence))
                    #expect(next.result.pixelWidth == (quarter % 2 == 0 ? 60 : 40))
                    #expect(next.attachments != last.attachments)
                    last = next
                }
            }
        }
    }
}

/// A value shared by the closures of a test.
final class Box<Value: Sendable>: @unchecked Sendable {
    // Safe because the tasks use it one after the other.
    var value: Value

    init(_ value: Value) { self.value = value }
}

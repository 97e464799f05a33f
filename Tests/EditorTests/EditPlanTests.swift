import Basics
import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Editor

@Suite(.timeLimit(.minutes(5)))
struct EditPlanTests {
    private let bright = AdjustmentList(operations: [.exposure(1)])
    private let grey = AdjustmentList(operations: [.blackAndWhite(1)])

    private func asset(_ types: ResourceType..., format: String? = nil, version: String = "1") -> Asset {
        var asset = Asset(id: .none, contentRevision: Revision(7))
        asset.mediaType = .image
        asset.resources = types.map {
            AssetResource(type: $0, digest: $0.rawValue, size: 1, contentType: "public.jpeg")
        }
        asset.adjustmentFormatIdentifier = format
        asset.adjustmentFormatVersion = format == nil ? nil : version
        return asset
    }

    private func errorCode(_ edit: ApplyEdit, _ asset: Asset, _ data: Bytes? = nil) -> ErrorCode? {
        do throws(RPCError) {
            _ = try EditPlan(edit, of: asset, adjustmentData: data)
            return nil
        } catch {
            return error.errorCode
        }
    }

    @Test func `replacing the editor's own edit starts from its base`() throws {
        let edit = ApplyEdit(asset: .none, adjustments: bright)
        let plain = try EditPlan(edit, of: asset(.photo), adjustmentData: nil)
        #expect(plain.source.type == .photo && plain.base == .original)
        #expect(plain.adjustments == bright)
        #expect(plain.contentRevision == Revision(7))
        let ours = asset(.photo, .fullSizePhoto, .adjustmentData, format: AdjustmentList.formatIdentifier)
        let again = try EditPlan(edit, of: ours, adjustmentData: nil)
        #expect(again.source.type == .photo && again.base == .original)
        #expect(!EditPlan.needsAdjustmentData(.replace, of: ours))
        let onTop = asset(
            .photo,
            .fullSizePhoto,
            .adjustmentData,
            .adjustmentBasePhoto,
            format: AdjustmentList.formatIdentifier
        )
        let above = try EditPlan(edit, of: onTop, adjustmentData: nil)
        #expect(above.source.type == .adjustmentBasePhoto && above.base == .previous)
    }

    @Test(.spec("S-86", "D4"))
    func `replacing another program's edit starts from its render`() throws {
        let edit = ApplyEdit(asset: .none, adjustments: bright)
        for types: [ResourceType] in [[], [.adjustmentBasePhoto]] {
            var theirs = asset(.photo, .fullSizePhoto, .adjustmentData, format: "com.example.other")
            for type in types {
                theirs.resources.append(AssetResource(type: type, digest: "b", size: 1, contentType: "public.jpeg"))
            }
            let plan = try EditPlan(edit, of: theirs, adjustmentData: nil)
            #expect(plan.source.type == .fullSizePhoto && plan.base == .current)
        }
        let newer = asset(.photo, .fullSizePhoto, format: AdjustmentList.formatIdentifier, version: "2")
        #expect(try EditPlan(edit, of: newer, adjustmentData: nil).base == .current, "a version it cannot read")
        let original = try #require(newer.version(ResourceType.photo.rawValue))
        #expect(try EditPlan(edit, of: newer, adjustmentData: nil, from: original).base == .original)
        #expect(newer.version("unknown") == nil)
    }

    @Test func `appending continues from the base of the current edit`() throws {
        var edit = ApplyEdit(asset: .none, adjustments: grey, mode: .append)
        let fresh = asset(.photo)
        #expect(!EditPlan.needsAdjustmentData(.append, of: fresh))
        #expect(try EditPlan(edit, of: fresh, adjustmentData: nil).adjustments == grey)
        let ours = asset(.photo, .fullSizePhoto, .adjustmentData, format: AdjustmentList.formatIdentifier)
        #expect(EditPlan.needsAdjustmentData(.append, of: ours))
        let plan = try EditPlan(edit, of: ours, adjustmentData: bright.json.bytes)
        #expect(plan.adjustments.operations == bright.operations + grey.operations)
        #expect(plan.source.type == .photo)
        let onTop = asset(
            .photo,
            .fullSizePhoto,
            .adjustmentData,
            .adjustmentBasePhoto,
            format: AdjustmentList.formatIdentifier
        )
        #expect(try EditPlan(edit, of: onTop, adjustmentData: bright.json.bytes).source.type == .adjustmentBasePhoto)
        let full = AdjustmentList(operations: Array(repeating: .exposure(0.1), count: AdjustmentList.maximumCount))
        #expect(errorCode(edit, ours, full.json.bytes) == .limitExceeded)
        edit.mode = .replace
        #expect(errorCode(edit, ours) == nil)
    }

    @Test func `each impossible edit has its error`() throws {
        let append = ApplyEdit(asset: .none, adjustments: grey, mode: .append)
        let theirs = asset(.photo, .fullSizePhoto, .adjustmentData, format: "com.example.other")
        #expect(errorCode(append, theirs, bright.json.bytes) == .requestNotSupported)
        let newer = asset(.photo, .adjustmentData, format: AdjustmentList.formatIdentifier, version: "2")
        #expect(errorCode(append, newer, bright.json.bytes) == .requestNotSupported)
        let ours = asset(.photo, .adjustmentData, format: AdjustmentList.formatIdentifier)
        #expect(errorCode(append, ours, [1, 2]) == .invalidResource)
        #expect(errorCode(append, ours, nil) == .invalidResource)
        var video = asset(.photo)
        video.mediaType = .video
        #expect(errorCode(append, video) == .missingResource)
        video = asset(.video)
        video.mediaType = .video
        #expect(errorCode(append, video) == nil)
        let sharp = AdjustmentList(operations: [try Adjustment(.clarity, ["value": 0.5])])
        #expect(errorCode(ApplyEdit(asset: .none, adjustments: sharp), video) == .requestNotSupported)
        let guarded = ApplyEdit(asset: .none, adjustments: grey, ifContentRevision: Revision(6))
        #expect(errorCode(guarded, asset(.photo)) == .conflict)
    }

    @Test func `pixels of options refer to the original of a video, and to its render if they are appended`() throws {
        var video = asset(.video, .fullSizeVideo, .adjustmentData, format: AdjustmentList.formatIdentifier)
        video.mediaType = .video
        (video.resources[0].pixelWidth, video.resources[0].pixelHeight) = (1920, 1080)
        (video.resources[1].pixelWidth, video.resources[1].pixelHeight) = (960, 540)
        let half = AdjustmentList(operations: [.crop(UnitRect(x: 0, y: 0, width: 0.5, height: 0.5))])
        let options = try MagickOptions("-crop 96x54+0+0")
        for (mode, width) in [(AdjustmentMode.replace, 1920), (AdjustmentMode.append, 960)] {
            let edit = ApplyEdit(asset: .none, adjustments: AdjustmentList(operations: []), magick: options, mode: mode)
            let plan = try EditPlan(edit, of: video, adjustmentData: half.json.bytes)
            let expected = try options.operations(for: (width, width * 9 / 16))
            #expect(plan.adjustments.operations == (mode == .append ? half.operations : []) + expected)
        }
    }

    @Test func `operations on videos are refused for photos, with a video or without`() throws {
        let quiet = try JSON(parsing: #"{"version": 1, "operations": [{"operation": "volume", "value": 0}]}"#)
        let edit = ApplyEdit(asset: .none, adjustments: try AdjustmentList(json: quiet))
        #expect(errorCode(edit, asset(.photo)) == .requestNotSupported)
        #expect(errorCode(edit, asset(.photo, .pairedVideo)) == .requestNotSupported)
    }

    @Test func `the history has the edit that an asset was created with, and the edit before the first known change`() {
        func versions(_ before: Asset?, _ after: Asset?, isFirst: Bool) -> [Asset?] {
            let versions = EntityChange(before: before, after: after).editedVersions(isFirst: isFirst)
            return [versions.earlier, versions.recorded]
        }
        let original = asset(.photo)
        var edited = asset(.photo, .fullSizePhoto, .adjustmentData, format: AdjustmentList.formatIdentifier)
        edited.contentRevision = Revision(8)
        var again = edited
        again.contentRevision = Revision(9)
        for isFirst in [true, false] {
            #expect(versions(nil, edited, isFirst: isFirst) == [nil, edited])
            #expect(versions(nil, original, isFirst: isFirst) == [nil, nil])
            #expect(versions(original, edited, isFirst: isFirst) == [nil, edited])
            #expect(versions(edited, nil, isFirst: isFirst) == [nil, nil])
            #expect(versions(edited, edited, isFirst: isFirst) == [nil, nil])
        }
        #expect(versions(edited, again, isFirst: true) == [edited, again])
        #expect(versions(edited, again, isFirst: false) == [nil, again])
        #expect(versions(edited, original, isFirst: true) == [edited, original])
    }

    @Test func `the volume of a Live Photo's video does not count as one of the operations`() throws {
        let full = AdjustmentList(
            operations: Array(repeating: .exposure(0.1), count: AdjustmentList.maximumCount),
            livePhoto: LivePhotoAdjustment(audioVolume: 0.5)
        )
        let edit = ApplyEdit(asset: .none, adjustments: full)
        let plan = try EditPlan(edit, of: asset(.photo, .pairedVideo), adjustmentData: nil)
        let sent = VideoRenderPlan(try #require(plan.pairedVideo), plan.adjustments.ofPairedVideo)
        #expect(try AdjustmentList(json: sent.adjustments) == full)
    }

    @Test func `the digest covers the request, not its client name and transaction id`() {
        let edit = ApplyEdit(asset: .none, adjustments: bright, client: "a", transaction: "1")
        var other = edit
        (other.client, other.transaction) = ("b", nil)
        #expect(EditDigest.of(edit) == EditDigest.of(other))
        #expect(EditDigest.of(edit).count == 64)
        other.adjustments = grey
        #expect(EditDigest.of(edit) != EditDigest.of(other))
        other = edit
        other.mode = .append
        #expect(EditDigest.of(edit) != EditDigest.of(other))
        other = edit
        other.ifContentRevision = Revision(1)
        #expect(EditDigest.of(edit) != EditDigest.of(other))
        #expect(EditDigest.of(RevertEdit(asset: .none)) != EditDigest.of(edit))
    }
}

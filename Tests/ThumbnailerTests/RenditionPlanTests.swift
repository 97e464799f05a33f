import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(5)))
struct RenditionPlanTests {
    private func resource(_ type: ResourceType, _ digest: Character, _ kind: String = "public.jpeg") -> AssetResource {
        AssetResource(type: type, digest: String(repeating: digest, count: 64), size: 1, contentType: kind)
    }

    private func asset(_ resources: AssetResource..., kind: MediaType = .image) -> Asset {
        var asset = Asset(id: .none)
        asset.mediaType = kind
        asset.resources = resources
        return asset
    }

    private func request(_ change: (inout ImageRequest) -> Void = { _ in }) -> ImageRequest {
        var request = ImageRequest(asset: .none, targetSize: .size(width: 100, height: 80))
        change(&request)
        return request
    }

    private func digest(_ version: ImageVersion, _ asset: Asset) throws -> Character? {
        try RenditionPlan(request { $0.version = version }, of: asset).digest.first
    }

    @Test(.spec("T-26")) func `each version is rendered from its own resource`() throws {
        let plain = asset(resource(.photo, "a"))
        let edited = asset(resource(.photo, "a"), resource(.fullSizePhoto, "b"))
        let pair = asset(
            resource(.photo, "a"),
            resource(.alternatePhoto, "c", "com.canon.cr2-raw-image"),
            resource(.fullSizePhoto, "b")
        )
        let rawFirst = asset(
            resource(.photo, "d", "com.adobe.raw-image"),
            resource(.alternatePhoto, "e")
        )
        for version in ImageVersion.allCases { #expect(try digest(version, plain) == "a") }
        #expect(try ImageVersion.allCases.map { try digest($0, edited) } == ["b", "a", "a"])
        #expect(try ImageVersion.allCases.map { try digest($0, pair) } == ["b", "a", "c"])
        #expect(try ImageVersion.allCases.map { try digest($0, rawFirst) } == ["d", "e", "d"])
    }

    @Test func `an asset without an image fails with its own error`() {
        let error = #expect(throws: RPCError.self) {
            try RenditionPlan(request(), of: asset(resource(.audio, "a"), kind: .audio))
        }
        #expect(error?.errorCode == .missingResource)
    }

    @Test func `a video's plan names the frame, and a time after its end or of a photo is refused`() throws {
        var original = resource(.video, "a")
        original.duration = 2_000_000
        let video = asset(original, kind: .video)
        var timed = request()
        #expect(try RenditionPlan(timed, of: video).frame == VideoFrameChoice())
        #expect(try RenditionPlan(timed, of: asset(resource(.photo, "a"))).frame == nil)
        timed.frameTime = 2_000_000
        #expect(try RenditionPlan(timed, of: video).frame?.time == 2_000_000)
        #expect(throws: RPCError.self) { try RenditionPlan(timed, of: asset(resource(.photo, "a"))) }
        timed.frameTime = 2_000_001
        let error = #expect(throws: RPCError.self) { try RenditionPlan(timed, of: video) }
        #expect(error?.errorCode == .invalidOptions && error?.data["parameter"] == "frameTime")
        let late = #expect(throws: RPCError.self) {
            try VideoFrameChoice(2_000_001, of: original, parameter: "times.1")
        }
        #expect(late?.data["parameter"] == "times.1")
    }

    @Test(arguments: [(0, 1), (1, 0), (-5, 10), (0, 0)])
    func `a size without pixels is refused with the parameter's name`(width: Int, height: Int) throws {
        let json: JSON = [
            "asset": "a00000000000000000000000001", "targetSize": ["width": JSON(width), "height": JSON(height)],
        ]
        let request = try ImageRequest(params: json)
        let error = #expect(throws: RPCError.self) { try RenditionPlan.check(request) }
        #expect(error?.errorCode == .invalidOptions)
        #expect(error?.data["parameter"] == "targetSize")
    }

    @Test func `a side that is too long is refused with the range`() {
        let json: JSON = ["asset": "a00000000000000000000000001", "targetSize": ["width": 100, "height": 16_385]]
        let error = #expect(throws: RPCError.self) { try ImageRequest(params: json) }
        #expect(error?.errorCode == .invalidParams && error?.message.contains("from 1 to 16384") == true)
    }

    @Test func `a crop needs exact mode, a size in pixels and an area inside the image`() throws {
        let half = UnitRect(x: 0.5, y: 0, width: 0.5, height: 1)
        let photo = asset(resource(.photo, "a"))
        func errorCode(_ change: (inout ImageRequest) -> Void) -> ErrorCode? {
            do {
                _ = try RenditionPlan(request(change), of: photo)
                return nil
            } catch {
                return error.errorCode
            }
        }
        #expect(errorCode { $0.normalizedCropRect = half } == .invalidOptions)
        #expect(
            errorCode { ($0.normalizedCropRect, $0.resizeMode, $0.targetSize) = (half, .exact, .maximum) }
                == .invalidOptions
        )
        for bad in [
            UnitRect(x: 0, y: 0, width: 0, height: 1), UnitRect(x: 0.6, y: 0, width: 0.5, height: 1),
            UnitRect(x: 0, y: 0.5, width: 1, height: 0.6),
        ] {
            #expect(errorCode { ($0.normalizedCropRect, $0.resizeMode) = (bad, .exact) } == .invalidOptions)
        }
        #expect(errorCode { ($0.normalizedCropRect, $0.resizeMode) = (half, .exact) } == nil)
    }

    @Test func `options without effect give equal plans`() throws {
        let photo = asset(resource(.photo, "a"))
        func plan(_ change: (inout ImageRequest) -> Void) throws -> RenditionPlan {
            try RenditionPlan(request(change), of: photo)
        }
        let full = try plan { $0.targetSize = .maximum }
        #expect(try plan { ($0.targetSize, $0.resizeMode) = (.maximum, .exact) } == full)
        #expect(try plan { ($0.targetSize, $0.contentMode) = (.maximum, .aspectFill) } == full)
        #expect(try plan { $0.resizeMode = .none } == full)
        #expect(
            try plan { ($0.format, $0.quality) = (.png, 10) } == plan { ($0.format, $0.quality) = (.png, 90) }
        )
        #expect(
            try plan { ($0.resizeMode, $0.normalizedCropRect) = (.exact, .full) } == plan { $0.resizeMode = .exact }
        )
        #expect(try plan { $0.deliveryMode = .fastFormat } == plan { _ in })
    }

    @Test func `a resize mode that has no effect on a source of known size gives equal plans`() throws {
        func modes(_ width: Int, _ height: Int, _ change: (inout ImageRequest) -> Void = { _ in }) throws -> [Int] {
            var source = resource(.photo, "a")
            (source.pixelWidth, source.pixelHeight) = (width, height)
            let plans = try [ImageResizeMode.fast, .exact, .none].map { mode in
                try RenditionPlan(
                    request {
                        $0.resizeMode = mode
                        change(&$0)
                    },
                    of: asset(source)
                )
            }
            return plans.map { plan in plans.firstIndex(of: plan) ?? -1 }
        }
        #expect(try modes(300, 200) == [0, 0, 2], "scaled down")
        #expect(try modes(101, 80) == [0, 0, 2], "by less than a pixel in height")
        #expect(try modes(103, 82) == [0, 0, 2], "by a pixel and more")
        #expect(try modes(90, 60) == [0, 1, 0], "enlarged only by the exact mode")
        #expect(try modes(100, 80) == [0, 1, 0])
        #expect(try modes(1000, 1) == [0, 0, 2], "a strip")
        #expect(try modes(0, 0) == [0, 1, 2], "of unknown size")
        #expect(try modes(300, 200) { $0.contentMode = .aspectFill } == [0, 1, 2])
    }

    @Test func `every option that changes a pixel changes the key`() throws {
        let photo = asset(resource(.photo, "a"))
        let changes: [(inout ImageRequest) -> Void] = [
            { _ in }, { $0.targetSize = .size(width: 101, height: 80) },
            { $0.targetSize = .size(width: 100, height: 81) },
            { $0.targetSize = .maximum }, { $0.contentMode = .aspectFill }, { $0.resizeMode = .exact },
            { ($0.resizeMode, $0.normalizedCropRect) = (.exact, UnitRect(x: 0, y: 0, width: 0.5, height: 1)) },
            { ($0.resizeMode, $0.normalizedCropRect) = (.exact, UnitRect(x: 0, y: 0, width: 0.5000001, height: 1)) },
            { $0.format = .webp }, { $0.format = .png }, { $0.quality = 84 },
        ]
        var keys = Set<String>()
        for change in changes {
            keys.insert(RenditionKey(try RenditionPlan(request(change), of: photo), rendererVersion: "1").text)
        }
        #expect(keys.count == changes.count)
        let plan = try RenditionPlan(request(), of: photo)
        keys.insert(RenditionKey(plan, rendererVersion: "2").text)
        keys.insert(
            RenditionKey(try RenditionPlan(request(), of: asset(resource(.photo, "b"))), rendererVersion: "1").text
        )
        #expect(keys.count == changes.count + 2)
        #expect(RenditionKey(plan, rendererVersion: "1") == RenditionKey(plan, rendererVersion: "1"))
    }

    @Test func `the canonical form is stable, so that caches stay valid`() throws {
        let plan = try RenditionPlan(request(), of: asset(resource(.photo, "a")))
        #expect(
            plan.json.text
                == #"{"digest":"\#(plan.digest)","targetSize":{"width":100,"height":80},"contentMode":"aspectFit","#
                + #""resizeMode":"fast","format":"jpeg","quality":85}"#
        )
        #expect(try RenditionPlan(json: plan.json) == plan)
    }
}

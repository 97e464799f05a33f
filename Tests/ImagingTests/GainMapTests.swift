import ImageFormats
import PhotoModel
import TestSupport
import Testing

@testable import Imaging

/// Tests of gain maps from untrusted bytes, and of files that are written with a gain map.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(5))))
struct GainMapTests {
    /// Returns an image with a gain map that Safelight has written.
    private static func file() throws -> [UInt8] {
        var channel = GainMapMetadata.Channel(minimum: -0.5, maximum: 3)
        (channel.gamma, channel.baseOffset, channel.alternateOffset) = (1.5, 1.0 / 32, 1.0 / 64)
        let candidate = GainMapMetadata(channels: [channel], baseHeadroom: 0.25, alternateHeadroom: 3)
        let metadata = try #require(candidate)
        let (image, map) = (TestImages.jpeg(width: 96, height: 64), TestImages.jpeg(width: 24, height: 16))
        return try #require(GainMapJPEG.file(image: image, map: map, metadata))
    }

    private static func options(_ format: ImageFormat) -> RenditionOptions {
        var options = RenditionOptions(target: .size(width: 48, height: 48), format: format)
        options.dynamicRange = .init()
        return options
    }

    @Test(.spec("T-45")) func `a written map is found with the same numbers`() throws {
        let bytes = try Self.file()
        let found = GainMapFile.find(in: bytes, try ImageHeader.read(bytes))
        guard case .jpeg(let range, let metadata) = found else {
            Issue.record("\(String(describing: found))")
            return
        }
        #expect(range.upperBound == bytes.count)
        let channel = try #require(metadata.channels.first)
        #expect(metadata.channels.count == 1 && !metadata.isApple)
        #expect((metadata.baseHeadroom, metadata.alternateHeadroom) == (0.25, 3))
        #expect((channel.minimum, channel.maximum, channel.gamma) == (-0.5, 3, 1.5))
        #expect((channel.baseOffset, channel.alternateOffset) == (1.0 / 32, 1.0 / 64))
        let image = try RenditionRenderer.render(bytes, Self.options(.jpeg))
        #expect(image.headroom == 8)
        #expect(try RenditionRenderer.render(image.bytes, Self.options(.avif)).headroom == 8)
    }

    @Test(.spec("T-45")) func `the weight of a map depends on the headroom of the display`() throws {
        let metadata = try #require(
            GainMapMetadata(channels: [.init(maximum: 2)], baseHeadroom: 1, alternateHeadroom: 3)
        )
        for (display, weight) in [(1.0, 0.0), (2, 0), (4, 0.5), (8, 1), (64, 1)] {
            #expect(metadata.weight(display: display) == weight)
        }
        let apple = try #require(GainMapMetadata(appleHeadroom: 4))
        #expect(abs(apple.gain(1, channel: 2) - 2) < 1e-9 && apple.gain(0, channel: 0) == 0)
        #expect(GainMapMetadata(appleHeadroom: 1) == nil && GainMapMetadata(appleHeadroom: .infinity) == nil)
    }

    @Test(.spec("T-45")) func `metadata with a number out of range is refused`() {
        func makeMetadata(_ change: (inout GainMapMetadata.Channel) -> Void) -> GainMapMetadata? {
            var channel = GainMapMetadata.Channel(maximum: 1)
            change(&channel)
            return GainMapMetadata(channels: [channel], baseHeadroom: 0, alternateHeadroom: 1)
        }
        #expect(makeMetadata { _ in } != nil)
        for value in [Double.nan, .infinity, 17, -17] {
            #expect(makeMetadata { $0.maximum = value } == nil && makeMetadata { $0.minimum = value } == nil)
            #expect(makeMetadata { $0.baseOffset = value } == nil && makeMetadata { $0.alternateOffset = value } == nil)
        }
        for value in [0.0, -1, 65, .nan] { #expect(makeMetadata { $0.gamma = value } == nil) }
        let channel = GainMapMetadata.Channel(maximum: 1)
        #expect(GainMapMetadata(channels: [channel], baseHeadroom: 2, alternateHeadroom: 1) == nil)
        #expect(GainMapMetadata(channels: [channel, channel], baseHeadroom: 0, alternateHeadroom: 1) == nil)
    }

    /// Any byte may be damaged: the image is rendered with a map or without, or refused with a message, and an edit of
    /// it ends.
    @Test(.spec("T-45")) func `damaged files are rendered or refused`() throws {
        var random = SeededRandom(named: "damaged gain maps")
        let seed = random.seed
        let whole = try Self.file()
        let list = AdjustmentList(operations: [])
        for _ in 0..<TestEnvironment.rounds(100) {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                bytes.removeLast(Int.random(in: 0..<bytes.count / 2, using: &random))
            }
            for format in [ImageFormat.jpeg, .avif] {
                do throws(ImagingError) {
                    let image = try RenditionRenderer.render(bytes, Self.options(format))
                    #expect(image.headroom.map { $0 > 1 && $0.isFinite } ?? true, "seed \(seed)")
                } catch {
                    #expect(!error.message.isEmpty, "seed \(seed)")
                }
            }
            if case .kept(let edited) = GainMapEdit.apply(list, to: bytes, rendered: whole) {
                #expect(edited.count > whole.count, "seed \(seed)")
            }
        }
    }
}

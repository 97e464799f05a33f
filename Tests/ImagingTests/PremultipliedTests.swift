import Foundation
@testable import Imaging
import TestSupport
import Testing

/// Tests of files whose colours are multiplied by their opacity.
@Suite(.timeLimit(.minutes(1)))
struct PremultipliedTests {
    /// 16 by 16 pixels of (200, 100, 50), written by libavif as premultiplied: the left half opaque, the right half
    /// with an opacity of 128.
    private static let avif = """
        AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUEAAAGUbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAAAAAAAO
        cGl0bQAAAAAAAQAAACxpbG9jAAAAAEQAAAIAAQAAAAEAAAHSAAAAHQACAAAAAQAAAbwAAAAWAAAAQmlpbmYAAAAAAAIAAAAaaW5m
        ZQIAAAAAAQAAYXYwMUNvbG9yAAAAABppbmZlAgAAAAACAABhdjAxQWxwaGEAAAAAKGlyZWYAAAAAAAAADnByZW0AAQABAAIAAAAO
        YXV4bAACAAEAAQAAAMNpcHJwAAAAnWlwY28AAAAUaXNwZQAAAAAAAAAQAAAAEAAAABBwaXhpAAAAAAMICAgAAAAMYXYxQ4EgAAAA
        AAATY29scm5jbHgAAQANAAaAAAAADnBpeGkAAAAAAQgAAAAMYXYxQ4EAHAAAAAA4YXV4QwAAAAB1cm46bXBlZzptcGVnQjpjaWNw
        OnN5c3RlbXM6YXV4aWxpYXJ5OmFscGhhAAAAAB5pcG1hAAAAAAAAAAIAAQQBAoMEAAIEAQWGBwAAADttZGF0EgAKBRgM/9hUMgtE
        YAAAUIyqqFUrlxIACgU4DP/YJDISRGAAABR/ud46oTg36WfNfxzA
        """

    @Test func `an AVIF with premultiplied colours is decoded to the original colours`() throws {
        let data = try #require(Data(base64Encoded: Self.avif, options: .ignoreUnknownCharacters))
        let wand = try HeifDecoder.decode([UInt8](data), scale: 1, limits: PixelLimits())
        var pixels: [UInt16] = []
        try wand.withPixelsForReading { samples, count in
            pixels = Array(UnsafeBufferPointer(start: samples, count: 4 * count))
        }
        for x in [3, 12] {
            // Blue, green, red, and the complement of the opacity.
            let pixel = pixels[4 * (8 * 16 + x)..<4 * (8 * 16 + x) + 4].map { Int($0) / 257 }
            for (found, expected) in zip(pixel, [50, 100, 200, x < 8 ? 0 : 127]) {
                #expect(abs(found - expected) <= 4, "\(x): \(pixel)")
            }
        }
    }
}

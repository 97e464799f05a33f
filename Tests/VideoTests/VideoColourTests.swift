import Foundation
import TestSupport
import Testing
import Video

/// Compares videos of high dynamic range with the formulas of the standards.
@Suite(.timeLimit(.minutes(5)))
struct VideoColourTests {
    /// Returns the sRGB value, 0...1, of a grey with a luminance in cd/m2, in a video with a peak luminance.
    private func expected(_ nits: Double, peak: Double) -> Double {
        let (m1, m2, c1, c2, c3) = (2610.0 / 16384, 2523.0 / 32, 3424.0 / 4096, 2413.0 / 128, 2392.0 / 128)
        func pq(_ nits: Double) -> Double {
            let power = pow(nits / 10000, m1)
            return pow((c1 + c2 * power) / (1 + c3 * power), m2)
        }
        func nitsOf(_ value: Double) -> Double {
            let power = pow(value, 1 / m2)
            return 10000 * pow(max(0, power - c1) / (c2 - c3 * power), 1 / m1)
        }
        let (top, white) = (pq(peak), pq(203) / pq(peak))
        let (value, knee) = (min(1, pq(nits) / top), 1.5 * white - 0.5)
        var mapped = value
        if value > knee {
            let t = (value - knee) / (1 - knee)
            mapped =
                (2 * t * t * t - 3 * t * t + 1) * knee + (t * t * t - 2 * t * t + t) * (1 - knee)
                + (-2 * t * t * t + 3 * t * t) * white
        }
        let light = min(1, nitsOf(mapped * top) / 203)
        return light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
    }

    /// Creates a video of grey fields, given as 10-bit codes of limited range.
    private func greys(_ codes: [Int], transfer: String, _ name: String = "g.mp4") throws -> VideoFixture {
        let (width, height) = (32 * codes.count, 64)
        var samples: [UInt8] = []
        func append(_ code: Int) { samples += [UInt8(code & 255), UInt8(code >> 8)] }
        for _ in 0..<height { for x in 0..<width { append(codes[x / 32]) } }
        for _ in 0..<(width / 2 * height / 2 * 2) { append(512) }
        return try VideoFixture(name) { path in
            try Data(samples).write(to: URL(fileURLWithPath: path + ".yuv"))
            try FFmpegVideos.ffmpeg([
                "-f", "rawvideo", "-pix_fmt", "yuv420p10le", "-s", "\(width)x\(height)", "-r", "25", "-i",
                path + ".yuv",
                "-c:v", "libx265", "-x265-params",
                "log-level=none:lossless=1:colorprim=bt2020:transfer=\(transfer):colormatrix=bt2020nc:range=limited",
                "-tag:v", "hvc1", path,
            ])
        }
    }

    private func luminances(_ video: VideoFixture, _ count: Int) throws -> [Double] {
        let (pixels, _) = try video.frame(.at(0, tolerance: 0))
        let width = 32 * count
        return (0..<count).map { field in
            let index = 3 * (32 * width + 32 * field + 16)
            #expect(
                abs(Int(pixels[index]) - Int(pixels[index + 1])) <= 1
                    && abs(Int(pixels[index]) - Int(pixels[index + 2])) <= 1
            )
            return Double(pixels[index + 1]) / 255
        }
    }

    @Test func `PQ becomes sRGB by the formula of BT.2390`() throws {
        let codes = [64, 150, 250, 350, 450, 500, 550, 600, 650, 720, 800, 940]
        let video = try greys(codes, transfer: "smpte2084")
        #expect(try video.info().isHDR)
        let (m1, m2, c1, c2, c3) = (2610.0 / 16384, 2523.0 / 32, 3424.0 / 4096, 2413.0 / 128, 2392.0 / 128)
        for (code, value) in zip(codes, try luminances(video, codes.count)) {
            let power = pow(Double(code - 64) / 876, 1 / m2)
            let nits = 10000 * pow(max(0, power - c1) / (c2 - c3 * power), 1 / m1)
            #expect(abs(value - expected(nits, peak: 1000)) < 0.01, "code \(code): \(value)")
        }
    }

    @Test func `HLG becomes sRGB as on a display of 1000 candelas`() throws {
        let codes = [64, 150, 250, 350, 450, 550, 650, 721, 800, 870, 940]
        let video = try greys(codes, transfer: "arib-std-b67")
        let info = try video.info()
        #expect((info.isHDR, info.transfer, info.primaries) == (true, "arib-std-b67", "bt2020"))
        for (code, value) in zip(codes, try luminances(video, codes.count)) {
            let signal = Double(code - 64) / 876
            let scene =
                signal <= 0.5 ? signal * signal / 3 : (exp((signal - 0.55991073) / 0.17883277) + 0.28466892) / 12
            let nits = 1000 * pow(scene, 1.2)
            #expect(abs(value - expected(nits, peak: 1000)) < 0.01, "code \(code): \(value)")
        }
    }

    @Test func `saturated colours keep their hue`() throws {
        let red = try VideoFixture("red.mp4") { path in
            try FFmpegVideos.ffmpeg([
                "-f", "lavfi", "-i", "color=0x800000:size=64x64:rate=25:duration=0.1", "-c:v", "libx265",
                "-x265-params",
                "log-level=none:lossless=1:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc", "-vf",
                "scale=out_color_matrix=bt2020,format=yuv420p10le", path,
            ])
        }
        let (pixels, _) = try red.frame(.automatic)
        let (r, g, b) = (Int(pixels[6000]), Int(pixels[6001]), Int(pixels[6002]))
        #expect(r > 100 && g < 10 && b < 10, "\(r) \(g) \(b)")
    }
}

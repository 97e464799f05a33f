import ImageFormats
import JSONValue
import Basics
import Contracts
import Foundation
import Imaging
import PhotoModel
import TestSupport
import Testing

@testable import Thumbnailer

/// A cell of the resize table (S-43): a combination of options whose size is checked.
struct ResizeCell: Sendable, CustomStringConvertible {
    let resizeMode: ImageResizeMode
    let contentMode: ImageContentMode
    /// Nil for "max".
    let target: (width: Int, height: Int)?
    /// True to crop to the right half first.
    var isCropped = false

    var description: String {
        "\(resizeMode.rawValue) \(contentMode.rawValue) \(target.map { "\($0.width)x\($0.height)" } ?? "max")"
            + (isCropped ? " of the right half" : "")
    }

    static func all(_ source: (width: Int, height: Int)) -> [ResizeCell] {
        let targets = [
            (1, 1), (2, 2), (106, 106), (120, 120), (200, 50), source, (2 * source.width, 2 * source.height),
        ]
        var cells: [ResizeCell] = []
        for contentMode in ImageContentMode.allCases {
            for resizeMode in ImageResizeMode.allCases {
                cells += targets.map { ResizeCell(resizeMode: resizeMode, contentMode: contentMode, target: $0) }
                cells.append(ResizeCell(resizeMode: resizeMode, contentMode: contentMode, target: nil))
            }
            cells += targets.map {
                ResizeCell(resizeMode: .exact, contentMode: contentMode, target: $0, isCropped: true)
            }
        }
        return cells
    }

    func request(_ asset: ObjectID) -> ImageRequest {
        ImageRequest(
            asset: asset,
            targetSize: target.map { .size(width: $0.width, height: $0.height) } ?? .maximum,
            contentMode: contentMode,
            resizeMode: resizeMode,
            deliveryMode: .highQualityFormat,
            normalizedCropRect: isCropped ? UnitRect(x: 0.5, y: 0, width: 0.5, height: 1) : nil,
            format: .jpeg
        )
    }

    /// Returns the error in a size; nil if the size is correct.
    func problem(_ width: Int, _ height: Int, isUpscaled: Bool, source: (width: Int, height: Int)) -> String? {
        guard let target, resizeMode != .none else {
            return (width, height) == source && !isUpscaled ? nil : "the full size was requested"
        }
        let part = (width: isCropped ? source.width - source.width / 2 : source.width, height: source.height)
        let factors = (Double(target.width) / Double(part.width), Double(target.height) / Double(part.height))
        let factor = contentMode == .aspectFit ? min(factors.0, factors.1) : max(factors.0, factors.1)
        let scaled = (width: Double(part.width) * factor, height: Double(part.height) * factor)
        if resizeMode == .exact {
            guard isUpscaled == (factor > 1) else { return "isUpscaled is \(isUpscaled)" }
            if contentMode == .aspectFill {
                return (width, height) == target ? nil : "the target is to be filled exactly"
            }
            let isLargeEnough = abs(Double(width) - scaled.width) <= 1 && abs(Double(height) - scaled.height) <= 1
            let touchesTarget = width == target.width || height == target.height
            return isLargeEnough && touchesTarget && width <= target.width && height <= target.height
                ? nil : "it must fit exactly"
        }
        if isUpscaled || width > source.width || height > source.height { return "fast mode does not enlarge" }
        let reachesTarget =
            Double(width) >= min(scaled.width, Double(source.width)) - 1
            && Double(height) >= min(scaled.height, Double(source.height)) - 1
        return reachesTarget ? nil : "the image is to reach the target size"
    }
}

extension ThumbnailerWorkerTests {
    @Suite(.timeLimit(.minutes(5)))
    struct ResizeTableTests {
        @Test(.spec("S-42", "S-43", "S-44", "P-13", "P-14", "D9", "D12"))
        func `every combination of resize options gives the size of the table, in every format`() async throws {
            try await ThumbnailerFixture.open { fixture in
                for (name, bytes) in try Self.images() {
                    let info = try ImageProbe.info(of: bytes)
                    let source = (width: info.pixelWidth, height: info.pixelHeight)
                    let asset = try fixture.catalog.add(bytes)
                    for cell in ResizeCell.all(source) {
                        let (result, image) = try await fixture.image(cell.request(asset.id))
                        let problem = cell.problem(
                            result.pixelWidth,
                            result.pixelHeight,
                            isUpscaled: result.isUpscaled,
                            source: source
                        )
                        #expect(problem == nil, "\(name) \(cell): \(result.pixelWidth)x\(result.pixelHeight)")
                        let real = try ImageProbe.info(of: image)
                        #expect(real.pixelWidth == result.pixelWidth && real.pixelHeight == result.pixelHeight)
                        #expect(!result.isDegraded && result.isFinal && result.index == 0)
                    }
                    for target in [TargetSize.size(width: 0, height: 9), .size(width: 9, height: -1)] {
                        var request = ResizeCell(resizeMode: .fast, contentMode: .aspectFit, target: nil)
                            .request(asset.id)
                        request.targetSize = target
                        let refusal = await fixture.rpcError(request)?.errorCode
                        #expect(refusal == .invalidOptions || refusal == .invalidParams, "\(name) \(target)")
                    }
                }
            }
        }

        /// Returns an image of each format available here, rotated if the format stores an orientation.
        private static func images() throws -> [(String, Bytes)] {
            let jpeg = TestImages.jpeg(width: 240, height: 160, orientation: 6)
            var images = [("a rotated jpeg", jpeg)]
            for format in ImageFormat.allCases where format.canEncode && format != .jpeg {
                images.append(
                    (format.rawValue, try RenditionRenderer.render(jpeg, RenditionOptions(format: format)).bytes)
                )
            }
            if let heic = SharedPhotos.files(["heif"]).first(where: { $0.lastPathComponent == "samplefilehub.heif" }) {
                images.append(("heic", SharedPhotos.bytes(heic)))
            } else {
                try Needed.reportMissingPart("photographs: sizes of HEICs")
            }
            return images
        }

        @Test(.spec("S-51", "P-26", "D3")) func `each key of the info dictionary is set in its case`()
            async throws
        {
            try await ThumbnailerFixture.open { fixture in
                let asset = try fixture.catalog.add(try LargeImageFixtures.large(width: 900, seed: 41, preview: true))
                // The image is so large that the preview is ready first on any machine, even if the preview's worker
                // has to start.
                var request = ImageRequest(asset: asset.id, targetSize: .size(width: 4500, height: 4500))
                request.resizeMode = .exact
                request.format = .png
                let messages = try await fixture.messages(request)
                #expect(messages.map { $0.result?.isDegraded } == [true, false])
                #expect(messages.allSatisfy { $0.result?.isInCloud == false && $0.result?.asset == asset.id })
                // A failure gives an error without an image.
                let broken = try fixture.catalog.add(Array("no picture".utf8))
                request.asset = broken.id
                let error = await fixture.rpcError(request)
                #expect(error?.errorCode == .unsupportedFormat)
                #expect(
                    error?.message.contains("jpeg, png") == true,
                    "the message lists the readable formats: \(error?.message ?? "")"
                )
                // A cancelled request has an error of its own.
                request.asset = asset.id
                request.targetSize = .size(width: 9000, height: 9000)
                let pending = Task { [request] in await fixture.rpcError(request) }
                try await Task.sleep(for: .milliseconds(100))
                pending.cancel()
                #expect(await pending.value?.errorCode == .userCancelled)
            }
        }
    }
}

import Foundation
import ImageFormats

/// Writes plans as a shell script with one command of ImageMagick's program `convert`.
struct MagickScript {
    /// The arguments between the input and the output.
    var words: [String] = []
    /// The EXIF orientation 1...8 of the input; nil for the one that ImageMagick reads.
    var orientation: Int?
    /// The files that the command needs besides its input, by name.
    private var files: [(name: String, bytes: [UInt8])] = []

    private static let folder = "$folder/"

    mutating func add(_ calls: [MagickCall]) throws(ImagingError) {
        words += try Self.arguments(calls) { (image) throws(ImagingError) in
            let bytes = try Encoder.encode(try image.makeWand(), format: .png, quality: 75, keepsDepth: true)
            return addFile("picture-\(files.count + 1).png", bytes)
        }
    }

    mutating func convertToSRGB(hasProfile: Bool) throws(ImagingError) {
        if hasProfile { words += ["-profile", addFile("srgb.icc", ColourProfile.sRGB)] }
        words += ["-colorspace", "sRGB"]
    }

    /// Declares that the values are those of a profile.
    mutating func assign(_ profile: [UInt8]) { words += ["-profile", addFile("picture.icc", profile)] }

    /// Adds a file to the script. Returns its path in the script.
    private mutating func addFile(_ name: String, _ bytes: [UInt8]) -> String {
        files.append((name, bytes))
        return Self.folder + name
    }

    /// The script. Its arguments are the names of the input and of the output.
    var text: String {
        var lines = [
            "#!/bin/sh", "# Renders an edit with ImageMagick 6: sh edit.sh INPUT OUTPUT", "set -eu",
            "folder=$(mktemp -d)", "trap 'rm -rf \"$folder\"' EXIT",
        ]
        for (name, bytes) in files {
            let base64 = Data(bytes).base64EncodedString(options: [.lineLength76Characters, .endLineWithLineFeed])
            lines += ["base64 -d >\"\(Self.folder)\(name)\" <<'END'", base64, "END"]
        }
        let orient = orientation.flatMap { Self.orientationNames[$0] }.map { " -orient \($0)" } ?? ""
        // Otherwise the setting would be written into the result.
        let upright = orient.isEmpty ? "" : " -orient TopLeft"
        var command = "convert \"$1[0]\"\(orient) -auto-orient\(upright) +repage"
        for word in words {
            let startsOption =
                word == "(" || word == ")" || (word.hasPrefix("-") && word.dropFirst().first?.isLetter == true)
            command += startsOption ? " \\\n  " : " "
            command += word.hasPrefix(Self.folder) ? "\"\(word)\"" : Self.quoted(word)
        }
        lines.append(command + " \\\n  \"$2\"")
        return lines.joined(separator: "\n") + "\n"
    }

    private static func quoted(_ word: String) -> String {
        let isPlain = word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-+.,:=%/".contains($0)) }
        return isPlain ? word : "'" + word.replacingOccurrences(of: "'", with: "'\\''") + "'"
    }

    /// Returns the arguments of the calls; `file` returns the name of the file of an image.
    static func arguments(_ calls: [MagickCall], file: (MagickImage) throws(ImagingError) -> String)
        throws(ImagingError) -> [String]
    {
        var words: [String] = []
        for call in calls {
            switch call {
            case .image(let image): words.append(try file(image))
            case .copy(let indices): words += ["-clone", indices.map(String.init).joined(separator: ",")]
            case .delete(let indices): words += ["-delete", indices.map(String.init).joined(separator: ",")]
            case .group(let inner): words += ["("] + (try arguments(inner, file: file)) + [")"]
            case .crop(let rect):
                words += ["-crop", "\(rect.width)x\(rect.height)+\(rect.x)+\(rect.y)", "+repage"]
            case .orient(let orientation): words += orientationOptions[orientation] ?? []
            case .resize(let width, let height, let filter):
                words += ["-filter", filter.rawValue, "-resize", "\(width)x\(height)!"]
            case .project(let map, let width, let height):
                words += [
                    "-virtual-pixel", "edge", "-filter", "Lanczos", "-define",
                    "distort:viewport=\(width)x\(height)+0+0", "-distort", "PerspectiveProjection",
                    projection(map).map(\.description).joined(separator: ","), "+repage",
                    // Otherwise it would apply to later distortions.
                    "+define", "distort:viewport", "+set", "option:distort:viewport",
                ]
            case .clut: words.append("-clut")
            case .hald: words.append("-hald-clut")
            case .matrix(let matrix): words += ["-color-matrix", kernel(matrix, columns: matrix.count / 3)]
            case .grey(let grey): words += ["-grayscale", grey.rawValue, "-set", "colorspace", "sRGB"]
            case .hue: words += ["-colorspace", "HSL", "-set", "colorspace", "sRGB"]
            case .luma: words += ["-intensity", "Rec709Luma", "-colorspace", "Rec709YCbCr"]
            case .colour: words += ["-colorspace", "sRGB"]
            case .separate: words.append("-separate")
            case .combineLuma: words += ["-combine", "-set", "colorspace", "Rec709YCbCr", "-colorspace", "sRGB"]
            case .convolve(let weights, let isColumn):
                words += ["-morphology", "Convolve", lineKernel(weights, isColumn: isColumn)]
            case .selectiveBlur(let threshold): words += ["-selective-blur", "2x1.5+\(100 * threshold)%"]
            case .effect(let effect): words += effect.words
            case .alphaOff: words += ["-alpha", "off"]
            case .composite(let composition):
                // Otherwise the setting would apply to borders and layers too.
                words += options(composition) + ["-composite", "-compose", "Over"]
            }
        }
        return words
    }

    private static func options(_ composition: MagickCall.Composition) -> [String] {
        switch composition {
        case .multiply: ["-compose", "Multiply"]
        case .blend(let weight): ["-compose", "Blend", "-define", "compose:args=\(100 * weight)"]
        case .copyOpacity: ["-compose", "CopyOpacity"]
        case .mathematics(let a, let b, let c, let d):
            ["-compose", "Mathematics", "-define", "compose:args=\(a),\(b),\(c),\(d)"]
        case .over(let x, let y):
            ["-geometry", "\(x < 0 ? "" : "+")\(x)\(y < 0 ? "" : "+")\(y)", "-compose", "Over"]
        }
    }

    private static let orientationNames = [
        1: "TopLeft", 2: "TopRight", 3: "BottomRight", 4: "BottomLeft", 5: "LeftTop", 6: "RightTop", 7: "RightBottom",
        8: "LeftBottom",
    ]

    private static let orientationOptions: [Int: [String]] = [
        2: ["-flop"], 3: ["-rotate", "180"], 4: ["-flip"], 5: ["-transpose"], 6: ["-rotate", "90"],
        7: ["-transverse"], 8: ["-rotate", "270"],
    ].mapValues { $0 + ["+repage"] }

    /// Returns a kernel in ImageMagick's notation.
    static func kernel(_ weights: [Double], columns: Int) -> String {
        "\(columns)x\(weights.count / columns): \(weights.map(\.description).joined(separator: ","))"
    }

    /// Returns the kernel of a convolution along rows or columns.
    ///
    /// ImageMagick would read and write an image column by column for a kernel of one column, which takes up to twice
    /// as long. With a second column of zeros it processes the image by rows, with the same result.
    static func lineKernel(_ weights: [Double], isColumn: Bool) -> String {
        guard isColumn else { return kernel(weights, columns: weights.count) }
        let values = weights.map { "\($0),0" }.joined(separator: ",")
        return "2x\(weights.count)+0+\(weights.count / 2): \(values)"
    }

    /// Returns the eight numbers of the distortion PerspectiveProjection for a map whose last number is 1.
    static func projection(_ map: [Double]) -> [Double] { map.dropLast().map { $0 / map[8] } }
}

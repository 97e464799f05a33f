import CMagickWand
import CPixels
import ImageFormats

/// ICC profiles and the conversion to sRGB.
enum ColourProfile {
    /// sRGB (IEC 61966-2-1) as a version 4 matrix profile, built here so that no file is needed.
    static let sRGB = matrix(name: "sRGB", colorantsOfSRGB, sRGBCurve)

    /// Display P3 as a version 4 matrix profile.
    static let displayP3 = matrix(name: "Display P3", colorantsOfDisplayP3, sRGBCurve)

    /// Applies the colours that a file specifies by numbers: sets a profile, or converts high dynamic range to sRGB.
    static func apply(_ colours: CodedColours, to wand: borrowing Wand) throws(ImagingError) {
        remove(from: wand)
        if colours.isHighDynamicRange {
            try mapTones(wand, from: colours)
        } else if colours != .sRGB {
            // The profile is for RGB, even if the pixels are grey.
            MagickSetImageColorspace(wand.pointer, sRGBColorspace)
            wand.setProfile(profile(of: colours))
        }
    }

    /// Maps pixels in high dynamic range to sRGB, like those of videos (ITU-R BT.2390), from 1,000 cd/m² to reference
    /// white.
    ///
    /// - Parameter colours: PQ or HLG; primaries other than those of BT.709 and P3 are treated as those of BT.2020
    private static func mapTones(_ wand: borrowing Wand, from colours: CodedColours) throws(ImagingError) {
        let transfer: Int32 = colours.transfer == .hybridLogGamma ? 2 : 1
        let primaries: Int32 =
            switch colours.primaries {
            case .bt709: 0
            case .p3: 2
            default: 1
            }
        try wand.withPixels { safelight_map_tones($0, $1, transfer, primaries) }
    }

    /// Undoes ImageMagick's handling of `gAMA` in a PNG: for some values it sets another colour space without a
    /// conversion.
    static func ignoreGamma(_ wand: borrowing Wand) {
        switch MagickGetImageColorspace(wand.pointer) {
        case RGBColorspace: MagickSetImageColorspace(wand.pointer, sRGBColorspace)
        case LinearGRAYColorspace: MagickSetImageColorspace(wand.pointer, GRAYColorspace)
        default: break
        }
    }

    /// Returns a profile for colours in standard range; nil if their primaries do not span a colour space.
    static func profile(of colours: CodedColours) -> [UInt8]? {
        guard let colorants = Colorants(colours.primaries) else { return nil }
        let curve =
            if case .power(let power) = colours.transfer { text("para") + big(0) + big(0) + fixed(power) } else {
                sRGBCurve
            }
        return matrix(name: "RGB", (colorants.red, colorants.green, colorants.blue), curve)
    }

    /// Converts the image to sRGB and removes its profile.
    ///
    /// A damaged profile is not an error: the colours are then treated as sRGB.
    ///
    /// - Parameter isOfRequest: true for an image of the request, or a second image, whose errors are not attributed to
    ///   the bytes of the job
    static func convertToSRGB(_ wand: borrowing Wand, isOfRequest: Bool = false) throws(ImagingError) {
        if let profile = profile(of: wand), !isSRGB(profile) {
            if !isOfRequest { ImagingLibrary.enter(.reading) }
            MagickProfileImage(wand.pointer, "icc", sRGB, sRGB.count)
            ImagingLibrary.enter(.working)
        }
        remove(from: wand)
        let space = MagickGetImageColorspace(wand.pointer)
        if space != sRGBColorspace, space != GRAYColorspace {
            try wand.attempt("converting to sRGB", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
        }
    }

    /// Removes the profile without a conversion.
    static func remove(from wand: borrowing Wand) {
        var length = 0
        if let removed = MagickRemoveImageProfile(wand.pointer, "icc", &length) { MagickRelinquishMemory(removed) }
    }

    /// Returns the profile of the image's colours; nil if it has none, or an unsuitable one: ImageMagick would apply a
    /// profile for another colour space to some of the channels.
    static func profile(of wand: borrowing Wand) -> [UInt8]? {
        guard let bytes = wand.profile("icc"), let profile = ICCProfile(bytes) else { return nil }
        let space = MagickGetImageColorspace(wand.pointer)
        let isSuitable =
            switch profile.colourSpace {
            case "RGB ": space != CMYKColorspace && space != LabColorspace
            case "GRAY": space == GRAYColorspace || wand.isGrey
            case "CMYK": space == CMYKColorspace
            case "Lab ": space == LabColorspace
            default: false
            }
        return isSuitable ? bytes : nil
    }

    /// Converts the image's colours from its profile to another one, which becomes its profile. A damaged profile is
    /// replaced without a conversion.
    static func convert(_ wand: borrowing Wand, to profile: [UInt8]) throws(ImagingError) {
        ImagingLibrary.enter(.reading)
        if MagickProfileImage(wand.pointer, "icc", profile, profile.count) != MagickTrue { wand.setProfile(profile) }
        ImagingLibrary.enter(.working)
    }

    /// Returns true if the profile is sRGB by its primaries and its tone curve, so that a conversion would change
    /// nothing.
    static func isSRGB(_ profile: [UInt8]) -> Bool { isMatrix(profile, colorantsOfSRGB) }

    /// Returns true if the profile is Display P3 by its primaries and its tone curve, which is that of sRGB.
    static func isDisplayP3(_ profile: [UInt8]) -> Bool { isMatrix(profile, colorantsOfDisplayP3) }

    private static func isMatrix(_ profile: [UInt8], _ colorants: Colorants.All) -> Bool {
        ICCProfile(profile)?.isMatrix(red: colorants.red, green: colorants.green, blue: colorants.blue) ?? false
    }

    private static let colorantsOfSRGB: Colorants.All = (
        (0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.71410)
    )
    private static let colorantsOfDisplayP3: Colorants.All = (
        (0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407)
    )

    private static let sRGBCurve =
        text("para") + big(0) + [0, 3, 0, 0] + [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045].flatMap(fixed)

    private static func matrix(name: String, _ colorants: Colorants.All, _ curve: [UInt8]) -> [UInt8] {
        let tags: [(String, [UInt8])] = [
            ("desc", words(name)), ("cprt", words("CC0")), ("wtpt", xyz((0.9642, 1, 0.8249))),
            ("rXYZ", xyz(colorants.red)),
            ("gXYZ", xyz(colorants.green)), ("bXYZ", xyz(colorants.blue)), ("rTRC", curve), ("gTRC", curve),
            ("bTRC", curve),
        ]
        var table = big(tags.count)
        var body: [UInt8] = []
        let start = 128 + 4 + 12 * tags.count
        for (tag, content) in tags {
            table += text(tag) + big(start + body.count) + big(content.count)
            body += content + [UInt8](repeating: 0, count: -content.count & 3)
        }
        var header = big(start + body.count) + big(0) + [4, 0x20, 0, 0] + text("mntr") + text("RGB ") + text("XYZ ")
        header += [0x07, 0xE8, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0] + text("acsp") + [UInt8](repeating: 0, count: 28)
        header += [0.9642, 1, 0.8249].flatMap(fixed) + [UInt8](repeating: 0, count: 48)
        return header + table + body
    }

    private static func text(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func big(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    private static func fixed(_ number: Double) -> [UInt8] { big(Int((number * 65536).rounded())) }

    private static func xyz(_ value: ICCProfile.Colorant) -> [UInt8] {
        text("XYZ ") + big(0) + fixed(value.x) + fixed(value.y) + fixed(value.z)
    }

    private static func words(_ words: String) -> [UInt8] {
        let units = words.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
        return text("mluc") + big(0) + big(1) + big(12) + text("enUS") + big(units.count) + big(28) + units
    }
}

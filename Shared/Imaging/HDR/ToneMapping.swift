import CPixels
import ImageFormats

/// Shows images of high dynamic range in standard range.
enum ToneMapping {
    /// Maps the pixels of an image to sRGB as those of videos (ITU-R BT.2390), from 1,000 cd/m² to reference white.
    ///
    /// - Parameter colours: PQ or HLG; other primaries than those of BT.709 and P3 count as those of BT.2020
    static func convertToSRGB(_ wand: borrowing Wand, from colours: CodedColours) throws(ImagingError) {
        let transfer: Int32 = colours.transfer == .hybridLogGamma ? 2 : 1
        let primaries: Int32 =
            switch colours.primaries {
            case .bt709: 0
            case .p3: 2
            default: 1
            }
        try wand.withPixels { safelight_map_tones($0, $1, transfer, primaries) }
    }
}

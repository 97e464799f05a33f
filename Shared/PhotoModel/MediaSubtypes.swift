import JSONValue

/// PhotoKit's `PHAssetMediaSubtype` (S-33), with its names and bits.
public struct MediaSubtypes: NamedBits {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    public static let photoPanorama = MediaSubtypes(rawValue: 1 << 0)
    public static let photoHDR = MediaSubtypes(rawValue: 1 << 1)
    public static let photoScreenshot = MediaSubtypes(rawValue: 1 << 2)
    public static let photoLive = MediaSubtypes(rawValue: 1 << 3)
    public static let photoDepthEffect = MediaSubtypes(rawValue: 1 << 4)
    public static let photoAnimation = MediaSubtypes(rawValue: 1 << 6)
    public static let spatialMedia = MediaSubtypes(rawValue: 1 << 10)
    public static let videoStreamed = MediaSubtypes(rawValue: 1 << 16)
    public static let videoHighFrameRate = MediaSubtypes(rawValue: 1 << 17)
    public static let videoTimelapse = MediaSubtypes(rawValue: 1 << 18)
    public static let videoScreenRecording = MediaSubtypes(rawValue: 1 << 19)
    public static let videoCinematic = MediaSubtypes(rawValue: 1 << 21)

    public static let names: [(name: String, bit: Int)] = [
        ("photoPanorama", 1 << 0), ("photoHDR", 1 << 1), ("photoScreenshot", 1 << 2), ("photoLive", 1 << 3),
        ("photoDepthEffect", 1 << 4), ("photoAnimation", 1 << 6), ("spatialMedia", 1 << 10),
        ("videoStreamed", 1 << 16), ("videoHighFrameRate", 1 << 17), ("videoTimelapse", 1 << 18),
        ("videoScreenRecording", 1 << 19), ("videoCinematic", 1 << 21),
    ]
}

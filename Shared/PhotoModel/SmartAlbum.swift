/// The smart albums: collections whose members are determined by the properties of the assets (S-08).
///
/// All rules are defined here. A rule reads one asset, so the effect of a change on every smart album follows from the
/// asset before and after it. The catalog stores the results as ``mask(of:)`` in a column. The raw value is PhotoKit's
/// number.
public enum SmartAlbum: Int, Sendable, CaseIterable, Hashable {
    /// Photos of no special kind.
    case generic = 200
    case panoramas = 201
    case videos = 202
    case favorites = 203
    case timelapses = 204
    case allHidden = 205
    case recentlyAdded = 206
    case bursts = 207
    case slomoVideos = 208
    case userLibrary = 209
    case selfPortraits = 210
    case screenshots = 211
    case depthEffect = 212
    case livePhotos = 213
    case animated = 214
    case longExposures = 215
    /// Assets of which no complete original can be copied elsewhere.
    case unableToUpload = 216
    case raw = 217
    case cinematic = 218
    case spatial = 219
    case screenRecordings = 220

    /// PhotoKit's subtype.
    public var subtype: CollectionSubtype { CollectionSubtype(number: rawValue) ?? .any }

    /// The identifier, which is the same in every library.
    public var id: ObjectID { ObjectID(.assetCollection, rule: .smartAlbum, key: UInt64(rawValue)) }

    /// Its bit in ``mask(of:)``.
    public var bit: Int { 1 << (rawValue - 200) }

    /// The title and a readable form of the rule.
    public var texts: (title: String, rule: String) {
        switch self {
        case .generic: ("Other", "in no smart album of a special kind of photo or video")
        case .panoramas: ("Panoramas", "mediaSubtypes has photoPanorama")
        case .videos: ("Videos", "mediaType is video")
        case .favorites: ("Favorites", "isFavorite")
        case .timelapses: ("Time-lapse", "mediaSubtypes has videoTimelapse")
        case .allHidden: ("Hidden", "isHidden")
        case .recentlyAdded: ("Recently Added", "isRecentlyAdded: addedDate is at most 30 days ago, as configured")
        case .bursts: ("Bursts", "burstIdentifier is not nil")
        case .slomoVideos: ("Slo-mo", "mediaSubtypes has videoHighFrameRate")
        case .userLibrary: ("Library", "sourceType is typeUserLibrary")
        case .selfPortraits:
            ("Selfies", "lensModel contains \"front camera\" or \"front TrueDepth camera\", case-insensitively")
        case .screenshots: ("Screenshots", "mediaSubtypes has photoScreenshot")
        case .depthEffect: ("Portrait", "mediaSubtypes has photoDepthEffect")
        case .livePhotos: ("Live Photos", "mediaSubtypes has photoLive")
        case .animated: ("Animated", "mediaSubtypes has photoAnimation")
        case .longExposures: ("Long Exposure", "playbackVariation is longExposure")
        case .unableToUpload: ("Unable to Upload", "an original resource has damage")
        case .raw: ("RAW", "a resource of type photo or alternatePhoto whose content type ends in raw-image")
        case .cinematic: ("Cinematic", "mediaSubtypes has videoCinematic")
        case .spatial: ("Spatial", "mediaSubtypes has spatialMedia")
        case .screenRecordings: ("Screen Recordings", "mediaSubtypes has videoScreenRecording")
        }
    }

    /// Returns true if an asset belongs to the album. Hidden assets and those in the trash belong too; the fetch
    /// excludes them (D7).
    public func contains(_ asset: Asset) -> Bool {
        switch self {
        case .generic: Self.special.allSatisfy { !$0.contains(asset) }
        case .panoramas: asset.mediaSubtypes.contains(.photoPanorama)
        case .videos: asset.mediaType == .video
        case .favorites: asset.isFavorite
        case .timelapses: asset.mediaSubtypes.contains(.videoTimelapse)
        case .allHidden: asset.isHidden
        case .recentlyAdded: asset.isRecentlyAdded
        case .bursts: asset.burstIdentifier != nil
        case .slomoVideos: asset.mediaSubtypes.contains(.videoHighFrameRate)
        case .userLibrary: asset.sourceType == .typeUserLibrary
        case .selfPortraits: asset.lensModel.map(Self.namesFrontCamera) ?? false
        case .screenshots: asset.mediaSubtypes.contains(.photoScreenshot)
        case .depthEffect: asset.mediaSubtypes.contains(.photoDepthEffect)
        case .livePhotos: asset.mediaSubtypes.contains(.photoLive)
        case .animated: asset.mediaSubtypes.contains(.photoAnimation)
        case .longExposures: asset.playbackVariation == .longExposure
        case .unableToUpload: asset.resources.contains { $0.isDamagedOriginal }
        case .raw: asset.resources.contains { $0.isRawOriginal }
        case .cinematic: asset.mediaSubtypes.contains(.videoCinematic)
        case .spatial: asset.mediaSubtypes.contains(.spatialMedia)
        case .screenRecordings: asset.mediaSubtypes.contains(.videoScreenRecording)
        }
    }

    /// Returns the bits of all smart albums to which an asset belongs.
    public static func mask(of asset: Asset) -> Int {
        var mask = 0
        // Computed several times for each change of an asset. Few assets have a subtype.
        if !asset.mediaSubtypes.isEmpty {
            for album in ofSubtypes where album.contains(asset) { mask |= album.bit }
        }
        for album in others where album.contains(asset) { mask |= album.bit }
        return mask & specialBits == 0 ? mask | generic.bit : mask
    }

    /// Returns the smart albums with a bit in a mask.
    public static func albums(inMask mask: Int) -> [SmartAlbum] { every.filter { mask & $0.bit != 0 } }

    /// The version of the rules: a library that was written with an earlier one computes the members again.
    public static let rulesVersion = 2

    /// All cases, computed once because they are iterated with each change of an asset.
    public static let every = allCases

    /// The albums whose members are of a special kind, which ``generic`` excludes.
    private static let special = every.filter {
        ![.generic, .userLibrary, .recentlyAdded, .favorites, .allHidden, .unableToUpload].contains($0)
    }
    private static let ofSubtypes = every.filter { $0.mediaSubtype != nil }
    private static let others = every.filter { $0 != .generic && $0.mediaSubtype == nil }
    private static let specialBits = special.reduce(0) { $0 | $1.bit }

    /// The names of front cameras as lenses, folded.
    private static let frontCameras: [StaticString] = ["front camera", "front truedepth camera"]

    private static func namesFrontCamera(_ lens: String) -> Bool {
        // Evaluated with each change of an asset: an ASCII name, as of nearly every lens, is not folded into a copy.
        var lens = lens
        let isFound: Bool? = lens.withUTF8 { bytes in
            guard bytes.allSatisfy({ $0 < 0x80 }) else { return nil }
            return frontCameras.contains { contains($0, bytes) }
        }
        if let isFound { return isFound }
        let text = folded(lens)
        return frontCameras.contains { TextMatch(.contains, $0.description).matches(folded: text) }
    }

    private static func contains(_ pattern: StaticString, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count >= pattern.utf8CodeUnitCount else { return false }
        return (0...bytes.count - pattern.utf8CodeUnitCount).contains { start in
            // Most positions differ here.
            guard bytes[start] | 0x20 == pattern.utf8Start[0] else { return false }
            return (0..<pattern.utf8CodeUnitCount).allSatisfy { offset in
                let byte = bytes[start + offset]
                let lowered = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
                return lowered == pattern.utf8Start[offset]
            }
        }
    }
}

extension AssetResource {
    /// True if it is an undeveloped camera file.
    public var isRawOriginal: Bool {
        (type == .photo || type == .alternatePhoto) && contentType.hasSuffix("raw-image")
    }

    /// True if it came with the asset and part of it cannot be decoded.
    var isDamagedOriginal: Bool {
        damage != nil && [.photo, .video, .audio, .alternatePhoto, .pairedVideo].contains(type)
    }
}

extension AssetCollection {
    /// Creates the entity of a smart album. Its count is PhotoKit's `NSNotFound` (S-39); `fetch.counts` returns the
    /// exact one.
    public init(_ album: SmartAlbum) {
        self.init(id: album.id)
        type = .smartAlbum
        subtype = album.subtype
        title = album.texts.title
    }
}

extension SmartAlbum {
    /// The media subtype that alone decides membership; nil for albums with another rule.
    public var mediaSubtype: MediaSubtypes? {
        switch self {
        case .panoramas: .photoPanorama
        case .timelapses: .videoTimelapse
        case .slomoVideos: .videoHighFrameRate
        case .screenshots: .photoScreenshot
        case .depthEffect: .photoDepthEffect
        case .livePhotos: .photoLive
        case .animated: .photoAnimation
        case .cinematic: .videoCinematic
        case .spatial: .spatialMedia
        case .screenRecordings: .videoScreenRecording
        case .videos, .favorites, .allHidden, .recentlyAdded, .bursts, .userLibrary, .selfPortraits, .longExposures,
            .raw, .generic, .unableToUpload:
            nil
        }
    }
}

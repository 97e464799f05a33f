public import JSONValue

// PhotoKit's enumerations with their own names and numbers. On the wire a value is its name.

/// An enumeration whose cases have PhotoKit's number as well as a name.
public protocol NumberedName: RawRepresentable, CaseIterable, Sendable, Hashable where RawValue == String {
    /// PhotoKit's number.
    var number: Int { get }
}

extension NumberedName {
    /// Looks up a case by PhotoKit's number; nil if there is none.
    public init?(number: Int) {
        guard let value = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = value
    }
}

extension JSONType where Value: NumberedName {
    /// Returns the type of a name, or of PhotoKit's number in its place. Values are written as names.
    public static func nameOrNumber(_: Value.Type) -> JSONType {
        let names = JSONType.name(Value.self)
        return JSONType(
            schema: [
                "anyOf": [names.schema(), ["type": "integer", "enum": .array(Value.allCases.map { JSON($0.number) })]]
            ],
            decode: { (json: JSON) throws(JSONProblem) in
                if let value = json.intValue.flatMap(Int.init(exactly:)).flatMap({ Value(number: $0) }) { return value }
                return try names.decode(json)
            },
            encode: names.encode
        )
    }
}

extension JSONType where Value == String {
    /// The type of a name that is checked later; a number is accepted too and becomes its digits.
    static var nameOrNumber: JSONType {
        let names = JSONType.text(maxBytes: 64)
        return JSONType(
            schema: ["anyOf": [names.schema(), ["type": "integer", "minimum": 0]]],
            decode: { (json: JSON) throws(JSONProblem) in
                if let number = json.intValue { return String(number) }
                return try names.decode(json)
            },
            encode: { .string($0) }
        )
    }
}

/// PhotoKit's `PHAssetMediaType`.
public enum MediaType: String, NumberedName {
    case unknown, image, video, audio

    public var number: Int {
        switch self {
        case .unknown: 0
        case .image: 1
        case .video: 2
        case .audio: 3
        }
    }
}

/// PhotoKit's `PHAssetPlaybackStyle` (T-08).
public enum PlaybackStyle: String, NumberedName {
    case unsupported, image, imageAnimated, livePhoto, video, videoLooping

    public var number: Int {
        switch self {
        case .unsupported: 0
        case .image: 1
        case .imageAnimated: 2
        case .livePhoto: 3
        case .video: 4
        case .videoLooping: 5
        }
    }
}

/// PhotoKit's `PHAsset.PlaybackVariation` (T-11).
public enum PlaybackVariation: String, NumberedName {
    case none, autoloop, mirror, longExposure

    public var number: Int {
        switch self {
        case .none: 0
        case .autoloop: 1
        case .mirror: 2
        case .longExposure: 3
        }
    }
}

/// PhotoKit's `PHAsset.AdjustmentsState` (T-11).
public enum AdjustmentsState: String, NumberedName {
    case none, userAdjusted, cameraAutoAdjusted

    public var number: Int {
        switch self {
        case .none: 0
        case .userAdjusted: 2
        case .cameraAutoAdjusted: 3
        }
    }
}

/// PhotoKit's `PHAssetSourceType`; a mask in fetch options, one value in an asset (T-07).
public enum SourceType: String, NumberedName {
    case typeUserLibrary, typeCloudShared, typeiTunesSynced

    public var number: Int {
        switch self {
        case .typeUserLibrary: 1
        case .typeCloudShared: 2
        case .typeiTunesSynced: 4
        }
    }
}

/// PhotoKit's `PHAssetCollectionType`.
public enum CollectionType: String, NumberedName {
    case album, smartAlbum, moment

    public var number: Int {
        switch self {
        case .album: 1
        case .smartAlbum: 2
        case .moment: 3
        }
    }
}

/// PhotoKit's `PHCollectionListType`.
public enum ListType: String, NumberedName {
    case momentList, folder, smartFolder

    public var number: Int {
        switch self {
        case .momentList: 1
        case .folder: 2
        case .smartFolder: 3
        }
    }
}

/// PhotoKit's `PHCollectionListSubtype`.
public enum ListSubtype: String, NumberedName {
    case any
    case momentListCluster, momentListYear
    case regularFolder, rootFolder
    case smartFolderEvents, smartFolderFaces

    public var number: Int {
        switch self {
        case .any: Int.max
        case .momentListCluster: 1
        case .momentListYear: 2
        case .regularFolder: 100
        case .rootFolder: 101
        case .smartFolderEvents: 200
        case .smartFolderFaces: 201
        }
    }
}

// MARK: - Masks

/// A set of named bits. On the wire it is a list of names, in the order of the bits.
public protocol NamedBits: OptionSet, Sendable, Hashable where RawValue == Int, Element == Self {
    /// The names of the bits, in their order.
    static var names: [(name: String, bit: Int)] { get }
}

extension NamedBits {
    /// The names of the bits that are set, in the order of the bits.
    public var names: [String] { Self.names.filter { rawValue & $0.bit != 0 }.map(\.name) }
}

extension JSONType where Value: NamedBits {
    /// Returns the type of a list of bit names; a number is accepted too.
    public static func bits(_: Value.Type) -> JSONType {
        let known = Value.names.map(\.name)
        return JSONType(
            schema: ["type": "array", "items": ["type": "string", "enum": JSON(known)], "uniqueItems": true],
            decode: { (json: JSON) throws(JSONProblem) in
                let all = Value.names.reduce(0) { $0 | $1.bit }
                if let number = json.intValue.flatMap(Int.init(exactly:)), number >= 0, number & ~all == 0 {
                    return Value(rawValue: number)
                }
                guard let elements = json.arrayValue else { throw JSONProblem("expected an array of names") }
                var mask = 0
                for element in elements {
                    guard let bit = Value.names.first(where: { $0.name == element.stringValue })?.bit else {
                        throw JSONProblem("expected names from \(known.joined(separator: ", "))")
                    }
                    mask |= bit
                }
                return Value(rawValue: mask)
            },
            encode: { JSON($0.names) }
        )
    }
}

/// PhotoKit's `PHAssetBurstSelectionType` (S-38).
public struct BurstSelectionTypes: NamedBits {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Picked automatically: by the program that imported the burst, or else by the catalog, by sharpness.
    public static let autoPick = BurstSelectionTypes(rawValue: 1 << 0)
    /// The user picked the frame.
    public static let userPick = BurstSelectionTypes(rawValue: 1 << 1)

    public static let names: [(name: String, bit: Int)] = [("autoPick", 1 << 0), ("userPick", 1 << 1)]
}

import JSONValue

/// The part of an adjustment list that only Live Photos have: `PHLivePhotoEditingContext` (T-48).
///
/// A list with it applies to the still and to each frame of the video. As JSON:
/// `{"audioVolume":0.5,"keyFrame":1200000}`, both optional.
public struct LivePhotoAdjustment: Sendable, Hashable {
    /// The volume of the video's sound, 0 (none) to 1; nil for 1.
    public var audioVolume: Double?
    /// The time in the video, in microseconds, whose frame becomes the still; nil keeps the still as taken.
    public var keyFrame: Int64?

    /// The maximum of ``keyFrame``: an hour.
    public static let maxKeyFrame: Int64 = 3_600_000_000

    public init(audioVolume: Double? = nil, keyFrame: Int64? = nil) {
        self.audioVolume = audioVolume.map { min(1, max(0, $0)) }
        self.keyFrame = keyFrame
    }

    /// True if it changes neither the sound nor the still.
    public var isNeutral: Bool { (audioVolume ?? 1) == 1 && keyFrame == nil }

    /// Returns the adjustment with the values that it lacks taken from an earlier one.
    public func merged(onto earlier: LivePhotoAdjustment?) -> LivePhotoAdjustment {
        LivePhotoAdjustment(audioVolume: audioVolume ?? earlier?.audioVolume, keyFrame: keyFrame ?? earlier?.keyFrame)
    }

    init(json: JSON) throws(AdjustmentError) {
        func refusal(_ member: String, _ found: JSON, _ allowed: String) -> AdjustmentError {
            AdjustmentError(
                .outOfRange,
                member: "livePhoto.\(member)",
                found: String(found.text.prefix(64)),
                allowed: [allowed]
            )
        }
        guard let object = json.objectValue else {
            throw AdjustmentError(.malformed, member: "livePhoto", allowed: ["an object {\"audioVolume\":1}"])
        }
        self.init()
        for (name, value) in object.members {
            switch name {
            case "audioVolume":
                guard let volume = value.doubleValue, (0...1).contains(volume) else {
                    throw refusal(name, value, "a number 0...1")
                }
                audioVolume = volume
            case "keyFrame":
                guard let time = value.intValue, (0...Self.maxKeyFrame).contains(time) else {
                    throw refusal(name, value, "microseconds 0...\(Self.maxKeyFrame)")
                }
                keyFrame = time
            default:
                throw AdjustmentError(
                    .unknownMember,
                    member: "livePhoto.\(name)",
                    allowed: ["audioVolume", "keyFrame"]
                )
            }
        }
    }

    var json: JSON {
        var object: JSONObject = [:]
        if let audioVolume { object["audioVolume"] = .double(audioVolume) }
        if let keyFrame { object["keyFrame"] = .int(keyFrame) }
        return .object(object)
    }

    static var schema: JSON {
        [
            "type": "object", "additionalProperties": false,
            "description": .string(
                "Present if the list applies to the still of a Live Photo and to each frame of its video; without it, "
                    + "only the still is edited. It is ignored for photos without a video and for videos."
            ),
            "properties": [
                "audioVolume": [
                    "type": "number", "minimum": 0, "maximum": 1, "default": 1,
                    "description": "The volume of the video's sound; 0 removes it.",
                ],
                "keyFrame": [
                    "type": "integer", "minimum": 0, "maximum": .int(maxKeyFrame),
                    "description": .string(
                        "The time in the video, in microseconds, whose frame becomes the still. Default: the still as "
                            + "taken."
                    ),
                ],
            ],
        ]
    }
}

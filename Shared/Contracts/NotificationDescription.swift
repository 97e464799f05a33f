public import JSONValue
import PhotoModel

/// The description of a notification that a request may send before its response.
public struct NotificationDescription: Sendable {
    /// The method name on the wire.
    public let name: String
    /// The description in words.
    public let summary: String
    /// The JSON Schema of its params without `id`, which every notification has: the id of the request.
    public let params: JSON
    /// Description of the attachments; empty if there are none.
    public let attachments: String

    private init(_ name: String, _ summary: String, _ params: JSON, attachments: String = "") {
        self.name = name
        self.summary = summary
        self.params = params
        self.attachments = attachments
    }

    /// Its entry in the document.
    var document: JSON {
        var params = params.objectValue ?? [:]
        var properties = params["properties"]?.objectValue ?? [:]
        properties["id"] = [
            "anyOf": [["type": "integer"], ["type": "string"]], "description": "The id of the request.",
        ]
        params["properties"] = .object(properties)
        params["required"] = .array([.string("id")] + (params["required"]?.arrayValue ?? []))
        var document: JSONObject = [
            "name": .string(name), "summary": .string(summary), "params": .object(params),
        ]
        if !attachments.isEmpty { document["x-attachments"] = .string(attachments) }
        return .object(document)
    }

    private static func object(_ members: JSONObject, optional: JSONObject = [:]) -> JSON {
        [
            "type": "object", "properties": .object(JSONObject(distinct: members.members + optional.members)),
            "required": JSON(members.members.map(\.name)),
        ]
    }

    private static let count: JSON = ["type": "integer", "minimum": 0]
    private static let token: JSON = JSONType<ChangeToken>.token.schema()
    private static let records: JSON = [
        "type": "array", "items": ["$ref": "#/components/schemas/ChangeRecord"],
    ]

    // MARK: The notifications

    static let changeRecords = NotificationDescription(
        ChangesFollow.notification,
        "Records of the history, in order.",
        object(["records": records, "token": token])
    )
    static let feedRecords = NotificationDescription(
        FeedFollow.notification,
        "Records of the history, in order.",
        object(["records": records, "token": token])
    )
    static let feedProgress = NotificationDescription(
        FeedFollow.progress,
        "The position of the stream while no record matches.",
        object(["token": token])
    )
    static let keys = NotificationDescription(
        FetchKeys.notification,
        "A part of the keys.",
        object([:]),
        attachments: "Keys, as encoded by ResultKey."
    )
    static let resourceChunk = NotificationDescription(
        ReadResource.notification,
        "A part of the resource.",
        object(["offset": count]),
        attachments: "The bytes from offset."
    )
    static let resourceProgress = NotificationDescription(
        DownloadResource.notification,
        "The part of the bytes that was downloaded from remote storage, from 0 to 1; only while something is downloaded.",
        object(["progress": ["type": "number", "minimum": 0, "maximum": 1]])
    )
    static let libraryProgress = NotificationDescription(
        BackupLibrary.notification,
        "How many of all resources are done.",
        object(["done": count, "total": count])
    )
    static let imageDegraded = NotificationDescription(
        ImageDelivery.degraded,
        "An image of lower quality; at least one more message follows.",
        ImageRequest.Result.table.schema,
        attachments: "The image."
    )
    static let imageChunk = NotificationDescription(
        ImageDelivery.chunk,
        "A part of an image that is too large for the response.",
        object(["offset": count]),
        attachments: "The bytes from offset."
    )
    static let editsProgress = NotificationDescription(
        "edits.progress",
        "How many of all assets are edited, and how many failed; of one video or Live Photo the part that is rendered.",
        object(
            ["done": count, "failed": count, "total": count],
            optional: ["part": ["type": "number", "minimum": 0, "maximum": 1]]
        )
    )
}

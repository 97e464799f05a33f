import JSONValue
import PhotoModel

/// The JSON Schemas of records and of the messages of the live feed.
enum FeedMessageSchemas {
    static let schemas: [(name: String, schema: JSON)] = [
        ("ChangeRecord", ChangeRecord.table.schema), ("FeedHead", FeedHead.table.schema),
        ("LibraryStatus", LibraryStatus.Result.table.schema), ("UploadJobs", UploadJobPage.table.schema),
        ("LiveHeader", header), ("LiveRecord", record), ("LiveChange", change), ("LiveFetch", fetch),
    ]

    /// Each topic of the feed with the schema of its messages.
    static let topics: JSON = [
        ["topic": "changes", "message": reference("LiveRecord")],
        ["topic": "asset.<id>", "message": reference("LiveChange")],
        ["topic": "collection.<id>", "message": reference("LiveChange")],
        ["topic": "list.<id>", "message": reference("LiveChange")],
        ["topic": "edit.<id>", "message": reference("LiveChange")],
        ["topic": "fetch.<observation>", "message": reference("LiveFetch")],
        ["topic": "grants", "message": reference("LiveChange")],
        ["topic": "availability", "message": reference("LibraryStatus")],
        ["topic": "jobs", "message": reference("UploadJobs")],
        ["topic": "head", "message": reference("FeedHead")],
    ]

    private static func reference(_ name: String) -> JSON { ["$ref": .string("#/components/schemas/" + name)] }

    /// The members with which every message begins.
    private static let header: JSON = [
        "type": "object", "description": "The members that every message about a transaction has.",
        "properties": [
            "sequence": ["type": "integer", "minimum": 1, "description": "Sequence of the transaction."],
            "library": ["type": "string", "description": "The history it belongs to."],
            "date": ["type": "integer", "description": "When it was committed, microseconds since 1970."],
            "origin": ChangeOrigin.table.schema,
            "previous": [
                "type": "integer", "minimum": 0,
                "description": "The topic carried nothing between this sequence and the message.",
            ],
            "token": JSONType<ChangeToken>.token.schema(),
            "truncated": ["const": true, "description": "The rest did not fit; read it with feed.since."],
        ],
        "required": ["sequence", "library", "date", "origin", "previous", "token"],
    ]

    private static let ids: JSON = ["type": "array", "items": ["type": "string"]]

    private static let record: JSON = [
        "description": "A whole record, or the identifiers of what it touches if it is truncated.",
        "allOf": [reference("LiveHeader")],
        "anyOf": [
            reference("ChangeRecord"),
            [
                "type": "object", "required": ["truncated"],
                "properties": ["assets": ids, "collections": ids, "lists": ids, "edits": ids],
            ],
        ],
    ]

    private static let change: JSON = [
        "description": "The change of one entity, or the state of one published edit.",
        "allOf": [reference("LiveHeader")],
        "anyOf": [
            ["type": "object", "required": ["truncated"]],
            [
                "type": "object", "required": ["change"],
                "properties": [
                    "change": [
                        "anyOf": [
                            PublishedEdit.table.schema, EntityChange<Grant>.schema, ConsentQuestion.table.schema,
                        ]
                    ]
                ],
            ],
            [
                "type": "object", "required": ["change", "assetContentChanged", "objectWasDeleted"],
                "properties": [
                    "change": [
                        "anyOf": [
                            EntityChange<Asset>.schema, EntityChange<AssetCollection>.schema,
                            EntityChange<CollectionList>.schema,
                        ]
                    ],
                    "assetContentChanged": ["type": "boolean", "description": "The pixels changed."],
                    "objectWasDeleted": ["type": "boolean", "description": "It no longer exists."],
                    "changedProperties": [
                        "type": "array", "items": ["type": "string"], "description": "The members that differ.",
                    ],
                ],
            ],
        ],
    ]

    private static let fetch: JSON = [
        "description": "The effect of a transaction on an observed fetch.",
        "allOf": [reference("LiveHeader")],
        "anyOf": [
            ["type": "object", "required": ["truncated"]],
            ["type": "object", "required": ["details"], "properties": ["details": ChangeDetails.table.schema]],
        ],
        "properties": [
            "objectWasDeleted": [
                "const": true,
                "description": "The album, moment or folder of the fetch, or the object that it contains, was deleted.",
            ]
        ],
    ]
}

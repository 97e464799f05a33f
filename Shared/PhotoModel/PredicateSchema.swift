public import JSONValue

extension Predicate {
    /// The JSON Schemas of predicates by name. They refer to each other as `#/components/schemas/NAME`.
    public static let schemas: [(name: String, schema: JSON)] = [
        ("Predicate", predicate), ("PredicateCondition", condition), ("PredicateValue", value),
    ]

    static func reference(_ name: String) -> JSON { ["$ref": .string("#/components/schemas/" + name)] }

    private static let predicate: JSON = [
        "description": "A condition: NSPredicate's text, text with arguments, or a tree.",
        "anyOf": [
            ["type": "string"],
            object(["format": ["type": "string"], "arguments": ["type": "array"]], required: ["format"]),
            reference("PredicateCondition"),
        ],
    ]

    private static let value: JSON = [
        "description": .string(
            "A value as its key's type demands: text, a number, true or false; dates as RFC 3339 text or microseconds; "
                + "durations as microseconds or \"60 s\"; enumerations as a name or PhotoKit's number."
        ),
        "type": ["string", "number", "boolean"],
    ]

    private static let condition: JSON = {
        let condition = reference("PredicateCondition")
        let values: JSON = ["type": "array", "items": reference("PredicateValue")]
        let key: JSON = ["type": "string", "enum": JSON(keyNames)]
        let options: JSON = ["type": "string", "enum": ["c", "d", "cd"]]
        return [
            "description": "A condition as a tree.",
            "anyOf": [
                ["type": "boolean"],
                object(["and": ["type": "array", "items": condition]], required: ["and"]),
                object(["or": ["type": "array", "items": condition]], required: ["or"]),
                object(["not": condition], required: ["not"]),
                object(
                    ["key": key, "op": names([.equal, .notEqual]), "value": ["type": "null"]],
                    required: ["key", "op", "value"]
                ),
                object(
                    [
                        "key": key,
                        "op": names([.equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual]),
                        "value": reference("PredicateValue"), "options": options,
                    ],
                    required: ["key", "op", "value"]
                ),
                object(
                    ["key": key, "op": names([.between, .isIn]), "value": values],
                    required: ["key", "op", "value"]
                ),
                object(
                    [
                        "key": key, "op": names([.beginsWith, .contains, .endsWith, .like]),
                        "value": ["type": "string"],
                        "options": options,
                    ],
                    required: ["key", "op", "value"]
                ),
                object(
                    [
                        "key": key, "mask": ["anyOf": [reference("PredicateValue"), values]],
                        "op": names([.equal, .notEqual]), "value": ["anyOf": [reference("PredicateValue"), values]],
                    ],
                    required: ["key", "mask", "op"]
                ),
                object(
                    [
                        "any": ["type": "string", "enum": JSON(listKeys.flatMap(names))],
                        "op": names([.equal, .isIn, .beginsWith, .contains, .endsWith, .like]),
                        "value": ["anyOf": [["type": "string"], values]], "options": options,
                    ],
                    required: ["any", "op", "value"]
                ),
                object(["near": numbers(["latitude", "longitude", "radius"])], required: ["near"]),
                object(["inside": numbers(["south", "west", "north", "east"])], required: ["inside"]),
            ],
        ]
    }()

    /// The keys of all classes with their aliases, and the other names that can be tested for presence.
    private static let keyNames: [String] = {
        let keys = PredicateKey.allCases.flatMap(names) + listKeys.map { $0.name + ".@count" } + ["location"]
        return Set(keys).sorted()
    }()

    /// The keys whose values are lists of text.
    private static let listKeys = PredicateKey.allCases.filter { $0.type == .textList }

    private static func names(_ key: PredicateKey) -> [String] {
        [key.name] + EntityClass.allCases.flatMap { key.aliases(in: $0) }
    }

    private static func names(_ operators: [PredicateOperator]) -> JSON {
        ["type": "string", "enum": JSON(operators.map(\.rawValue))]
    }

    private static func numbers(_ names: [String]) -> JSON {
        var members: JSONObject = [:]
        for name in names { members[name] = ["type": "number"] }
        return object(members, required: names)
    }

    private static func object(_ members: JSONObject, required: [String]) -> JSON {
        [
            "type": "object", "properties": .object(members), "required": JSON(required),
            "additionalProperties": false,
        ]
    }
}

extension JSONType where Value == JSON {
    /// The type of a predicate in any of its forms; it is decoded later, when the class of entities is known.
    static var predicate: JSONType {
        JSONType(
            schema: Predicate.reference("Predicate"),
            decode: { (json: JSON) throws(JSONProblem) in json },
            encode: { $0 }
        )
    }
}

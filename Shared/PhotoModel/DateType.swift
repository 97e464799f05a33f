public import JSONValue

extension JSONType where Value == Int64 {
    /// The format that marks a date in a schema.
    public static var dateFormat: String { "date-time" }

    /// Returns the type of a date: microseconds since 1970-01-01T00:00:00Z. RFC 3339 text is accepted too; a day
    /// without a time is its midnight in UTC.
    public static func date(_ range: ClosedRange<Int64> = Int64.min...Int64.max) -> JSONType {
        JSONType(
            schema: [
                "anyOf": [
                    ["type": "integer", "minimum": .int(range.lowerBound), "maximum": .int(range.upperBound)],
                    ["type": "string", "format": .string(dateFormat)],
                ]
            ],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let date = json.intValue ?? json.stringValue.flatMap(Timestamp.parse), range.contains(date) else {
                    throw JSONProblem(
                        "expected RFC 3339 text such as \"2024-05-01T12:30:00+02:00\" in the years 1 to 9999, or "
                            + "microseconds since 1970"
                    )
                }
                return date
            },
            encode: { .int($0) }
        )
    }
}

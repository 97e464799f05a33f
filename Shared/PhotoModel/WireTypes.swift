public import JSONValue

extension JSONType where Value == Fetch {
    /// A checked fetch.
    public static var fetch: JSONType {
        JSONType(
            schema: FetchDescription.table.schema,
            decode: { (json: JSON) throws(JSONProblem) in
                do throws(PredicateError) { return try Fetch(json: json) } catch {
                    throw JSONProblem(error.message)
                }
            },
            encode: { $0.json }
        )
    }
}

extension JSONType where Value == AdjustmentList {
    /// The editor's own list of operations.
    public static var adjustments: JSONType {
        JSONType(
            schema: AdjustmentList.documentation,
            decode: { (json: JSON) throws(JSONProblem) in
                do throws(AdjustmentError) { return try AdjustmentList(json: json) } catch {
                    throw JSONProblem(error.description)
                }
            },
            encode: { $0.json }
        )
    }
}

public import JSONValue

// The JSON form of predicates. A condition is one of
//
//     true, false
//     {"key": K, "op": "==" | "!=" | "<" | "<=" | ">" | ">=", "value": V}
//     {"key": K, "op": "between", "value": [V, V]}
//     {"key": K, "op": "in", "value": [V, …]}
//     {"key": K, "op": "beginsWith" | "contains" | "endsWith" | "like", "value": TEXT, "options": "c" | "d" | "cd"}
//     {"key": K, "op": "==" | "!=", "value": TEXT, "options": …}
//     {"key": "location", "op": "==" | "!=", "value": null}
//     {"key": LIST + ".@count", "op": "==" | ">", "value": 0}
//     {"key": K, "mask": M, "op": "==" | "!=", "value": M}      compares (key & mask) with the value, default 0
//     {"any": LIST, "op": "==" | "in" | a text operator, "value": …, "options": …}
//     {"near": {"latitude": …, "longitude": …, "radius": metres}}
//     {"inside": {"south": …, "west": …, "north": …, "east": …}}
//     {"and": [condition, …]}, {"or": [condition, …]}, {"not": condition}
//
// where V is a value as described by PredicateType and LIST is keywords, hierarchicalKeywords or persons. Encoded trees
// are canonical: equal predicates have equal bytes.

extension Predicate {
    /// Decodes the JSON tree.
    ///
    /// - Throws: `unsupported_predicate`, `invalid_predicate`, `limit_exceeded`
    public init(json: JSON, of entityClass: EntityClass) throws(PredicateError) {
        var reader = PredicateTreeReader(checker: PredicateChecker(entityClass: entityClass))
        try self.init(try reader.parseNode(json, depth: 0), of: entityClass)
    }

    /// Decodes any of the accepted forms: the JSON tree, text, or `{"format": text, "arguments": […]}`.
    ///
    /// - Throws: `unsupported_predicate`, `invalid_predicate`, `limit_exceeded`
    public init(anyForm json: JSON, of entityClass: EntityClass) throws(PredicateError) {
        if let format = json.stringValue {
            try self.init(format: format, of: entityClass)
        } else if case .object(let object) = json, let format = object["format"] {
            guard let text = format.stringValue,
                object.members.allSatisfy({ $0.name == "format" || $0.name == "arguments" }),
                let arguments = (object["arguments"] ?? []).arrayValue
            else {
                throw PredicateError(
                    .invalidPredicate,
                    "the text form is {\"format\": text, \"arguments\": [values]}",
                    allowed: ["format", "arguments"]
                )
            }
            try self.init(format: text, arguments: arguments, of: entityClass)
        } else {
            try self.init(json: json, of: entityClass)
        }
    }

    /// The canonical tree.
    public var json: JSON { root.json }
}

// MARK: - Reading

/// Reads the JSON tree of a predicate into checked nodes.
struct PredicateTreeReader {
    let checker: PredicateChecker
    private var nodes = 0

    init(checker: PredicateChecker) { self.checker = checker }

    mutating func parseNode(_ json: JSON, depth: Int) throws(PredicateError) -> PredicateNode {
        nodes += 1
        guard depth <= Predicate.maxDepth, nodes <= Predicate.maxNodes else {
            throw PredicateError(
                .limitExceeded,
                "the predicate is too large: at most \(Predicate.maxNodes) nodes, \(Predicate.maxDepth) deep"
            )
        }
        if case .bool(let truth) = json { return .constant(truth) }
        guard case .object(let object) = json else {
            throw PredicateError(.invalidPredicate, "a condition must be true, false or an object")
        }
        if let operands = object["and"] { return .and(try parseOperands(operands, in: object, "and", depth)) }
        if let operands = object["or"] { return .or(try parseOperands(operands, in: object, "or", depth)) }
        if let operand = object["not"] {
            try requireOnly(["not"], in: object)
            return .not(try parseNode(operand, depth: depth + 1))
        }
        if let circle = object["near"] {
            try requireOnly(["near"], in: object)
            let numbers = try parseNumbers(circle, ["latitude", "longitude", "radius"])
            return try checker.near(numbers)
        }
        if let box = object["inside"] {
            try requireOnly(["inside"], in: object)
            return try checker.inside(try parseNumbers(box, ["south", "west", "north", "east"]))
        }
        return try parseComparison(object)
    }

    private mutating func parseOperands(
        _ json: JSON,
        in object: JSONObject,
        _ name: String,
        _ depth: Int
    ) throws(PredicateError) -> [PredicateNode] {
        try requireOnly([name], in: object)
        guard let operands = json.arrayValue else {
            throw PredicateError(.invalidPredicate, "\"\(name)\" takes a list of conditions")
        }
        var result: [PredicateNode] = []
        for operand in operands { result.append(try parseNode(operand, depth: depth + 1)) }
        return result
    }

    private func parseComparison(_ object: JSONObject) throws(PredicateError) -> PredicateNode {
        guard let name = (object["key"] ?? object["any"])?.stringValue, let sign = object["op"]?.stringValue else {
            throw PredicateError(
                .invalidPredicate,
                "a condition needs \"key\" and \"op\"",
                allowed: ["key", "any", "near", "inside", "and", "or", "not"]
            )
        }
        let isAny = object["key"] == nil
        let hasMask = object["mask"] != nil
        let names = isAny ? ["any", "op", "value", "options"] : ["key", "op", "value", "options", "mask"]
        try requireOnly(names, in: object)
        guard let operation = PredicateOperator(rawValue: sign) else {
            throw PredicateError(
                .unsupportedPredicate,
                "unknown operator \"\(sign.prefix(32))\"",
                key: try checker.key(name).name,
                entityClass: checker.entityClass,
                allowed: PredicateOperator.allCases.map(\.rawValue)
            )
        }
        let options: JSON = object["options"] ?? .null
        if !isAny, !hasMask, options.isNull, let value = object["value"],
            let condition = try checker.presenceCondition(name, operation, .json(value))
        {
            return condition
        }
        let key = try checker.key(name)
        let letters = options.isNull ? "" : options.stringValue
        guard let folding = letters.flatMap({ TextFolding(letters: $0) }) else {
            throw PredicateError(.invalidPredicate, "options are c, d or cd", key: key.name, allowed: ["c", "d", "cd"])
        }
        if hasMask {
            return try checker.bits(
                key,
                mask: .json(object["mask"] ?? .null),
                operation,
                .json(object["value"] ?? 0)
            )
        }
        guard let value = object["value"] else {
            throw PredicateError(.invalidPredicate, "a condition needs \"value\"", key: key.name)
        }
        let literal = value.arrayValue.map { PredicateLiteral.list($0.map(PredicateLiteral.json)) } ?? .json(value)
        return isAny
            ? try checker.any(key, operation, literal, folding)
            : try checker.condition(key, operation, literal, folding)
    }

    private func requireOnly(_ names: [String], in object: JSONObject) throws(PredicateError) {
        guard let unknownField = object.members.first(where: { !names.contains($0.name) }) else { return }
        throw PredicateError(
            .invalidPredicate,
            "\"\(unknownField.name.prefix(64))\" is not a member of this condition",
            allowed: names
        )
    }

    private func parseNumbers(_ json: JSON, _ names: [String]) throws(PredicateError) -> [Double] {
        guard case .object(let object) = json else {
            throw PredicateError(.invalidPredicate, "expected an object of numbers", allowed: names)
        }
        try requireOnly(names, in: object)
        var numbers: [Double] = []
        for name in names {
            guard let number = object[name]?.doubleValue else {
                throw PredicateError(.invalidPredicate, "\"\(name)\" must be a number", allowed: names)
            }
            numbers.append(number)
        }
        return numbers
    }
}

// MARK: - Writing

extension PredicateNode {
    var json: JSON {
        switch self {
        case .constant(let truth): .bool(truth)
        case .comparison(let key, let relation, let value):
            ["key": .string(key.name), "op": .string(relation.rawValue), "value": key.json(value)]
        case .between(let key, let lower, let upper):
            ["key": .string(key.name), "op": "between", "value": [key.json(lower), key.json(upper)]]
        case .isIn(let key, let list):
            ["key": .string(key.name), "op": "in", "value": .array(list.map(key.json))]
        case .text(let key, let match): Self.json("key", key, match)
        case .bits(let key, let mask, let isEqual, let value):
            [
                "key": .string(key.name), "mask": .int(mask), "op": isEqual ? "==" : "!=", "value": .int(value),
            ]
        case .any(let key, .isIn(let words)): ["any": .string(key.name), "op": "in", "value": JSON(words)]
        case .any(let key, .matches(let match)): Self.json("any", key, match)
        case .near(let circle):
            [
                "near": [
                    "latitude": .double(circle.latitude), "longitude": .double(circle.longitude),
                    "radius": .double(circle.radius),
                ]
            ]
        case .inside(let box):
            [
                "inside": [
                    "south": .double(box.south), "west": .double(box.west), "north": .double(box.north),
                    "east": .double(box.east),
                ]
            ]
        case .and(let operands): ["and": .array(operands.map(\.json))]
        case .or(let operands): ["or": .array(operands.map(\.json))]
        case .not(let operand): ["not": operand.json]
        }
    }

    private static func json(_ member: String, _ key: PredicateKey, _ match: TextMatch) -> JSON {
        var object: JSONObject = [
            member: .string(key.name), "op": .string(match.kind.rawValue), "value": .string(match.pattern),
        ]
        if !match.folding.isEmpty { object["options"] = .string(match.folding.letters) }
        return .object(object)
    }
}

extension PredicateKey {
    /// Returns a value as it is written in the canonical tree.
    func json(_ value: PredicateValue) -> JSON {
        switch (value, type) {
        case (.null, _): .null
        case (.integer(let number), .flag): .bool(number != 0)
        case (.integer(let number), .name(let names)):
            names.first { $0.number == number }.map { .string($0.name) } ?? .int(number)
        case (.integer(let number), _): .int(number)
        case (.number(let number), _): .double(number)
        case (.text(let text), _): .string(text)
        }
    }
}

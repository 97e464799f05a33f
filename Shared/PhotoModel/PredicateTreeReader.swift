import JSONValue

struct PredicateTreeReader {
    let checker: PredicateChecker
    private var nodes = 0

    init(checker: PredicateChecker) { self.checker = checker }

    mutating func node(_ json: JSON, depth: Int) throws(PredicateError) -> PredicateNode {
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
        if let operands = object["and"] { return .and(try list(operands, in: object, "and", depth)) }
        if let operands = object["or"] { return .or(try list(operands, in: object, "or", depth)) }
        if let operand = object["not"] {
            try only(["not"], in: object)
            return .not(try node(operand, depth: depth + 1))
        }
        if let circle = object["near"] {
            try only(["near"], in: object)
            let numbers = try numbers(circle, ["latitude", "longitude", "radius"])
            return try checker.near(numbers)
        }
        if let box = object["inside"] {
            try only(["inside"], in: object)
            return try checker.inside(try numbers(box, ["south", "west", "north", "east"]))
        }
        return try leaf(object)
    }

    private mutating func list(
        _ json: JSON,
        in object: JSONObject,
        _ name: String,
        _ depth: Int
    ) throws(PredicateError) -> [PredicateNode] {
        try only([name], in: object)
        guard let operands = json.arrayValue else {
            throw PredicateError(.invalidPredicate, "\"\(name)\" takes a list of conditions")
        }
        var result: [PredicateNode] = []
        for operand in operands { result.append(try node(operand, depth: depth + 1)) }
        return result
    }

    private func leaf(_ object: JSONObject) throws(PredicateError) -> PredicateNode {
        guard let name = (object["key"] ?? object["any"])?.stringValue, let sign = object["op"]?.stringValue else {
            throw PredicateError(
                .invalidPredicate,
                "a condition needs \"key\" and \"op\"",
                allowed: ["key", "any", "near", "inside", "and", "or", "not"]
            )
        }
        let isAny = object["key"] == nil
        let hasMask = object["mask"] != nil
        try only(isAny ? ["any", "op", "value", "options"] : ["key", "op", "value", "options", "mask"], in: object)
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
            let condition = try checker.missing(name, operation, .json(value))
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

    private func only(_ names: [String], in object: JSONObject) throws(PredicateError) {
        guard let unknownField = object.members.first(where: { !names.contains($0.name) }) else { return }
        throw PredicateError(
            .invalidPredicate,
            "\"\(unknownField.name.prefix(64))\" is not a member of this condition",
            allowed: names
        )
    }

    private func numbers(_ json: JSON, _ names: [String]) throws(PredicateError) -> [Double] {
        guard case .object(let object) = json else {
            throw PredicateError(.invalidPredicate, "expected an object of numbers", allowed: names)
        }
        try only(names, in: object)
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

import JSONValue

/// A constant before the type of its key is known.
indirect enum PredicateLiteral {
    case json(JSON)
    /// A date in microseconds, from CAST(…, "NSDate").
    case date(Int64)
    case list([PredicateLiteral])
}

/// Converts literals to the type of their key and refuses meaningless conditions.
///
/// Both notations of a predicate are checked here, so they cannot differ.
struct PredicateChecker {
    let entityClass: EntityClass
    /// The unit of durations that are numbers without a unit.
    var durations = Predicate.DurationUnit.microseconds

    func key(_ name: String, offset: Int? = nil) throws(PredicateError) -> PredicateKey {
        guard let key = PredicateKey(named: name, of: entityClass) else {
            throw .unknownKey(name, of: entityClass, offset: offset)
        }
        return key
    }

    func condition(
        _ key: PredicateKey,
        _ operation: PredicateOperator,
        _ literal: PredicateLiteral,
        _ folding: TextFolding
    ) throws(PredicateError) -> PredicateNode {
        try check(operation, folding, against: key)
        if key.type == .date, let condition = try dayCondition(key, operation, literal) { return condition }
        if let kind = operation.textKind {
            guard let text = try text(literal, key) else { return .constant(false) }
            return .text(key, try textMatch(kind, text, folding, key))
        }
        switch operation {
        case .between:
            let bounds = try list(literal, key, count: 2)
            return .between(key, bounds[0], bounds[1])
        case .isIn: return .isIn(key, try list(literal, key, count: nil))
        default:
            guard let relation = operation.relation else { return .constant(false) }
            if !folding.isEmpty, let text = try text(literal, key) {
                let match = PredicateNode.text(key, try textMatch(.equals, text, folding, key))
                return relation == .equal ? match : .not(match)
            }
            return .comparison(key, relation, try value(literal, key))
        }
    }

    /// Returns the condition on a name that is not a key: the number of texts in a list (`keywords.@count`), or the
    /// whole location; nil for any other name.
    ///
    /// Such a condition tests whether there is a value, and becomes a condition on a key.
    func presenceCondition(
        _ name: String,
        _ operation: PredicateOperator,
        _ literal: PredicateLiteral
    ) throws(PredicateError) -> PredicateNode? {
        guard let property = presenceProperty(name) else { return nil }
        func refusal(_ allowed: [String]) -> PredicateError {
            PredicateError(
                .unsupportedPredicate,
                "\(name) is only tested for presence",
                key: name,
                entityClass: entityClass,
                allowed: allowed.map { "\(name) \($0)" }
            )
        }
        switch property {
        case .location:
            guard case .json(.null) = literal, operation == .equal || operation == .notEqual else {
                throw refusal(["== nil", "!= nil"])
            }
            return .comparison(.latitude, operation == .equal ? .equal : .notEqual, .null)
        case .count(let key):
            let hasText = PredicateNode.any(key, .matches(TextMatch(.like, "*")))
            guard case .json(.int(let number)) = literal else { throw refusal(["== 0", "> 0"]) }
            switch (operation, number) {
            case (.equal, 0), (.lessOrEqual, 0), (.less, 1): return .not(hasText)
            case (.notEqual, 0), (.greater, 0), (.greaterOrEqual, 1): return hasText
            default: throw refusal(["== 0", "> 0"])
            }
        }
    }

    /// Returns true if ``presenceCondition(_:_:_:)`` accepts a name.
    func testsPresence(_ name: String) -> Bool { presenceProperty(name) != nil }

    private enum PresenceProperty { case location, count(PredicateKey) }

    private func presenceProperty(_ name: String) -> PresenceProperty? {
        guard entityClass == .asset else { return nil }
        if name == "location" { return .location }
        guard name.hasSuffix(".@count"), let key = PredicateKey(named: String(name.dropLast(7)), of: .asset),
            key.type == .textList
        else { return nil }
        return .count(key)
    }

    /// Returns the condition on a date that is compared with a whole day in UTC; nil if it is not compared with a day.
    private func dayCondition(
        _ key: PredicateKey,
        _ operation: PredicateOperator,
        _ literal: PredicateLiteral
    ) throws(PredicateError) -> PredicateNode? {
        func bounds(of literal: PredicateLiteral) -> (start: PredicateValue, end: PredicateValue)? {
            guard case .json(.string(let text)) = literal, text.utf8.count == Timestamp.dayLength,
                let start = Timestamp.parse(text)
            else { return nil }
            return (.integer(start), .integer(start + 86_400_000_000 - 1))
        }
        if operation == .between, case .list(let range) = literal, range.count == 2, let last = bounds(of: range[1]) {
            return .between(key, try value(range[0], key), last.end)
        }
        if operation == .isIn, case .list(let literals) = literal, literals.contains(where: { bounds(of: $0) != nil }) {
            guard literals.count <= 100 else {
                throw PredicateError(.limitExceeded, "IN takes at most 100 values if one is a day", key: key.name)
            }
            var days: [PredicateNode] = []
            for literal in literals { days.append(try condition(key, .equal, literal, [])) }
            return .or(days)
        }
        guard let (start, end) = bounds(of: literal) else { return nil }
        return switch operation {
        case .equal: .between(key, start, end)
        case .notEqual: .not(.between(key, start, end))
        case .less: .comparison(key, .less, start)
        case .lessOrEqual: .comparison(key, .lessOrEqual, end)
        case .greater: .comparison(key, .greater, end)
        case .greaterOrEqual: .comparison(key, .greaterOrEqual, start)
        default: nil
        }
    }

    func any(
        _ key: PredicateKey,
        _ operation: PredicateOperator,
        _ literal: PredicateLiteral,
        _ folding: TextFolding
    ) throws(PredicateError) -> PredicateNode {
        guard key.type == .textList else {
            let lists = entityClass.keys.filter { $0.type == .textList }.map(\.name)
            throw unsupported("ANY is for lists of text, not for \(key.name)", key, allowed: lists)
        }
        if operation == .isIn {
            guard folding.isEmpty else { throw unsupported("IN takes no options; use OR", key) }
            guard case .list(let literals) = literal else { throw invalid(key, "IN takes a list of texts") }
            var words: [String] = []
            for literal in literals {
                if let word = try text(literal, key) { words.append(word) }
            }
            return .any(key, .isIn(words))
        }
        let kind: TextMatch.Kind
        if operation == .equal {
            kind = .equals
        } else if let textKind = operation.textKind {
            kind = textKind
        } else {
            throw unsupported(
                "ANY \(key.name) takes no \(operation.rawValue)",
                key,
                allowed: ["==", "in"] + PredicateOperator.allCases.filter { $0.textKind != nil }.map(\.rawValue)
            )
        }
        // A text of a list is never nil.
        guard let word = try text(literal, key) else { return .constant(false) }
        return .any(key, .matches(try textMatch(kind, word, folding, key)))
    }

    /// Returns a test on a text. The limit applies to the folded pattern, because the canonical tree contains that.
    private func textMatch(
        _ kind: TextMatch.Kind,
        _ text: String,
        _ folding: TextFolding,
        _ key: PredicateKey
    ) throws(PredicateError) -> TextMatch {
        let match = TextMatch(kind, text, folding: folding)
        try checkLength(match.pattern, key)
        guard kind != .like || match.pattern.unicodeScalars.count <= Predicate.maxLikeScalars else {
            throw PredicateError(
                .limitExceeded,
                "a LIKE pattern has at most \(Predicate.maxLikeScalars) characters; use CONTAINS for longer texts",
                key: key.name
            )
        }
        return match
    }

    func bits(
        _ key: PredicateKey,
        mask: PredicateLiteral,
        _ operation: PredicateOperator,
        _ literal: PredicateLiteral
    ) throws(PredicateError) -> PredicateNode {
        guard case .bits = key.type else {
            throw unsupported(
                "\(key.name) is not a mask",
                key,
                allowed: entityClass.keys.filter { if case .bits = $0.type { true } else { false } }.map(\.name)
            )
        }
        guard operation == .equal || operation == .notEqual else {
            throw unsupported("a bit test uses == or !=", key, allowed: ["==", "!="])
        }
        guard case .integer(let mask) = try value(mask, key), case .integer(let bits) = try value(literal, key) else {
            throw invalid(key, "a bit test cannot use nil")
        }
        return .bits(key, mask: mask, isEqual: operation == .equal, value: bits)
    }

    func near(_ numbers: [Double]) throws(PredicateError) -> PredicateNode {
        try requireLocation()
        guard numbers.count == 3,
            let circle = GeoCircle(latitude: numbers[0], longitude: numbers[1], radius: numbers[2])
        else {
            throw PredicateError(
                .invalidPredicate,
                "near takes latitude -90...90, longitude -180...180, radius 0...\(Int(GeoCircle.maxRadius)) metres"
            )
        }
        return .near(circle)
    }

    func inside(_ numbers: [Double]) throws(PredicateError) -> PredicateNode {
        try requireLocation()
        guard numbers.count == 4,
            let box = GeoBox(south: numbers[0], west: numbers[1], north: numbers[2], east: numbers[3])
        else {
            throw PredicateError(
                .invalidPredicate,
                "inside takes south and north in -90...90, south not above north, west and east in -180...180"
            )
        }
        return .inside(box)
    }

    // MARK: Errors

    private func requireLocation() throws(PredicateError) {
        guard entityClass == .asset else {
            throw PredicateError(
                .unsupportedPredicate,
                "\(entityClass.rawValue) has no location",
                key: "location",
                entityClass: entityClass,
                allowed: entityClass.keys.map(\.name)
            )
        }
    }

    private func check(
        _ operation: PredicateOperator,
        _ folding: TextFolding,
        against key: PredicateKey
    ) throws(PredicateError) {
        let allowed: [PredicateOperator]
        switch key.type {
        case .text: allowed = PredicateOperator.allCases
        case .id: allowed = [.equal, .notEqual, .isIn, .beginsWith]
        case .flag: allowed = [.equal, .notEqual, .isIn]
        case .textList: throw unsupported("use ANY \(key.name)", key, allowed: ["ANY \(key.name)"])
        case .integer, .number, .date, .duration, .name, .bits:
            allowed = PredicateOperator.allCases.filter { $0.textKind == nil }
        }
        guard allowed.contains(operation) else {
            throw unsupported(
                "\(key.name) does not support \(operation.rawValue)",
                key,
                allowed: allowed.map(\.rawValue)
            )
        }
        guard
            folding.isEmpty || key.type == .text && (operation == .equal || operation == .notEqual)
                || operation.textKind != nil && key.name != PredicateKey.localIdentifier.name
        else { throw unsupported("[\(folding.letters)] is for ==, != and text operators on text", key) }
    }

    private func unsupported(_ message: String, _ key: PredicateKey, allowed: [String] = []) -> PredicateError {
        PredicateError(.unsupportedPredicate, message, key: key.name, entityClass: entityClass, allowed: allowed)
    }

    private func invalid(_ key: PredicateKey, _ message: String) -> PredicateError {
        PredicateError(.invalidPredicate, message, key: key.name, entityClass: entityClass)
    }
}

// MARK: - Values

extension PredicateChecker {
    /// The maximum up to which a `Double` represents every microsecond.
    private static let maxMicroseconds = 1e15

    private func list(
        _ literal: PredicateLiteral,
        _ key: PredicateKey,
        count: Int?
    ) throws(PredicateError) -> [PredicateValue] {
        guard case .list(let literals) = literal, literals.count == count ?? literals.count else {
            throw invalid(key, count == nil ? "IN takes a list" : "BETWEEN takes a list of two values")
        }
        guard literals.count <= Predicate.maxListValues else {
            throw PredicateError(.limitExceeded, "IN takes at most \(Predicate.maxListValues) values", key: key.name)
        }
        let type = key.type
        var values: [PredicateValue] = []
        values.reserveCapacity(literals.count)
        for literal in literals { values.append(try value(literal, key, type)) }
        return values
    }

    private func value(_ literal: PredicateLiteral, _ key: PredicateKey) throws(PredicateError) -> PredicateValue {
        try value(literal, key, key.type)
    }

    private func text(_ literal: PredicateLiteral, _ key: PredicateKey) throws(PredicateError) -> String? {
        switch try value(literal, key, .text) {
        case .text(let text): text
        default: nil
        }
    }

    private func value(
        _ literal: PredicateLiteral,
        _ key: PredicateKey,
        _ type: PredicateType
    ) throws(PredicateError) -> PredicateValue {
        let json: JSON
        switch literal {
        case .json(.null): return .null
        case .json(.array(let elements)):
            return try self.value(.list(elements.map(PredicateLiteral.json)), key, type)
        case .json(let value): json = value
        case .date(let date):
            guard type == .date else {
                throw invalid(key, "\(key.name) is not a date but \(expectedLiterals(of: type))")
            }
            return .integer(date)
        case .list(let literals):
            if case .bits(let names) = type { return .integer(try mask(literals, key, names)) }
            throw invalid(key, "\(key.name) is compared with \(expectedLiterals(of: type)), not with a list")
        }
        if let value = try scalar(json, key, type) { return value }
        throw invalid(key, "\(key.name) is compared with \(expectedLiterals(of: type))")
    }

    private func expectedLiterals(of type: PredicateType) -> String { type.literals(durations: durations) }

    /// Returns the value of a literal; `nil` if it is of the wrong type.
    private func scalar(
        _ json: JSON,
        _ key: PredicateKey,
        _ type: PredicateType
    ) throws(PredicateError) -> PredicateValue? {
        switch type {
        case .text, .textList:
            guard let text = json.stringValue.map(nfc) else { return nil }
            try checkLength(text, key)
            return .text(text)
        case .integer: return json.intValue.map { .integer($0) }
        case .number: return json.doubleValue.flatMap { $0.isFinite ? .number($0 + 0) : nil }
        case .date:
            return json.intValue.map { .integer($0) }
                ?? json.stringValue.flatMap(Timestamp.parse)
                .map { .integer($0) }
        case .duration:
            if let text = json.stringValue { return DurationText.microseconds(text).map { .integer($0) } }
            guard durations == .microseconds else {
                return json.doubleValue.flatMap(Self.microseconds(of:)).map { .integer($0) }
            }
            if let microseconds = json.intValue { return .integer(microseconds) }
            guard let microseconds = json.doubleValue, abs(microseconds) <= Self.maxMicroseconds else { return nil }
            return .integer(Int64(microseconds.rounded()))
        case .flag:
            if let flag = json.boolValue { return .integer(flag ? 1 : 0) }
            return json.intValue.flatMap { $0 == 0 || $0 == 1 ? .integer($0) : nil }
        case .id: return json.stringValue.flatMap { ObjectID($0) }.map { .text($0.text) }
        case .name(let names):
            let known = names.first { $0.name == json.stringValue || $0.number == json.intValue }
            return known.map { .integer($0.number) }
        case .bits(let names):
            if let number = json.intValue, number >= 0 { return .integer(number) }
            return names.first { $0.name == json.stringValue }.map { .integer($0.number) }
        }
    }

    /// Returns the microseconds of a number of seconds, at most ``maxMicroseconds``: programs write "without a limit"
    /// as infinity or as the maximum number. Nil for NaN.
    private static func microseconds(of seconds: Double) -> Int64? {
        guard !seconds.isNaN else { return nil }
        return Int64(min(max(seconds * 1_000_000, -maxMicroseconds), maxMicroseconds).rounded())
    }

    private func checkLength(_ text: String, _ key: PredicateKey) throws(PredicateError) {
        guard text.utf8.count <= Predicate.maxTextBytes else {
            throw PredicateError(
                .limitExceeded,
                "a text in a predicate has at most \(Predicate.maxTextBytes) bytes",
                key: key.name
            )
        }
    }

    private func mask(
        _ literals: [PredicateLiteral],
        _ key: PredicateKey,
        _ names: [PredicateType.Name]
    ) throws(PredicateError) -> Int64 {
        var mask: Int64 = 0
        for literal in literals {
            guard case .json(let json) = literal, let name = names.first(where: { $0.name == json.stringValue }) else {
                throw invalid(key, "\(key.name) is compared with \(expectedLiterals(of: .bits(names)))")
            }
            mask |= name.number
        }
        return mask
    }
}

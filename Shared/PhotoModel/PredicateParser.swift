public import JSONValue

extension Predicate {
    /// Parses NSPredicate's text form.
    ///
    /// Comparisons with the key on either side (`= == != <> < <= =< > >= =>`), `BETWEEN {a, b}`, `IN {…}`, `BEGINSWITH
    /// CONTAINS ENDSWITH LIKE == !=` with `[c] [d] [cd]`, `ANY keywords …` (also SOME and NONE), bit tests
    /// `(mediaSubtypes & 2) != 0`, `AND OR NOT && || !`, parentheses, TRUEPREDICATE and FALSEPREDICATE, a flag alone,
    /// quoted text, numbers, durations as `60 s`, TRUE FALSE YES NO, NIL NULL, dates as text or as
    /// `CAST("2024-05-01T00:00:00Z", "NSDate")`, days as `"2024-05-01"` (the whole day in UTC), `location == nil`,
    /// `keywords.@count == 0`, and `%@ %d %ld %f %K …` for the arguments in their order. Safelight's own additions are
    /// `NEAR(latitude, longitude, metres)` and `INSIDE(south, west, north, east)`. Keywords are case-insensitive, keys
    /// are case-sensitive.
    ///
    /// - Parameter durations: the unit of durations that are numbers without a unit
    /// - Throws: `unsupported_predicate`, `invalid_predicate`, `limit_exceeded`, with the byte offset in the text
    public init(
        format: String,
        arguments: [JSON] = [],
        of entityClass: EntityClass,
        durations: DurationUnit = .microseconds
    ) throws(PredicateError) {
        var lexer = PredicateLexer(format, arguments: arguments)
        var parser = PredicateParser(
            tokens: try lexer.readTokens(),
            checker: PredicateChecker(entityClass: entityClass, durations: durations)
        )
        // Checks the limits of the whole tree, and brings it into normal form.
        try self.init(try parser.parseDocument(), of: entityClass)
    }
}

/// A recursive-descent parser of the text form.
struct PredicateParser {
    let tokens: [PredicateToken]
    let checker: PredicateChecker
    private var position = 0
    private var nodes = 0

    init(tokens: [PredicateToken], checker: PredicateChecker) {
        self.tokens = tokens
        self.checker = checker
    }

    /// One side of a comparison.
    private enum Operand {
        case key(PredicateKey)
        /// A name that is not a key, but can be tested for presence, such as `keywords.@count`.
        case presence(String)
        case masked(PredicateKey, PredicateLiteral)
        case literal(PredicateLiteral)
    }

    private enum Quantifier: String { case any = "ANY", some = "SOME", none = "NONE" }

    mutating func parseDocument() throws(PredicateError) -> PredicateNode {
        let node = try parseAlternatives(depth: 0)
        guard token.kind == .end else { throw unexpected("AND, OR or the end") }
        return node
    }

    // MARK: Tokens

    private var token: PredicateToken { tokens[min(position, tokens.count - 1)] }

    private var word: String? {
        guard case .word(let word) = token.kind else { return nil }
        return word.uppercased()
    }

    private func unexpected(_ expected: String) -> PredicateError {
        let found =
            switch token.kind {
            case .word(let word): "\"\(word.prefix(64))\""
            case .sign(let sign): "\"\(sign)\""
            case .text: "a text"
            case .number: "a number"
            case .argument: "an argument"
            case .key: "a key"
            case .end: "the end"
            }
        return PredicateError(.invalidPredicate, "expected \(expected), found \(found)", offset: token.offset)
    }

    private mutating func consume(sign: String) -> Bool {
        guard token.kind == .sign(sign) else { return false }
        position += 1
        return true
    }

    private mutating func consume(word expected: String) -> Bool {
        guard word == expected else { return false }
        position += 1
        return true
    }

    private mutating func expect(_ sign: String) throws(PredicateError) {
        guard consume(sign: sign) else { throw unexpected("\"\(sign)\"") }
    }

    // MARK: Connectives

    private mutating func parseAlternatives(depth: Int) throws(PredicateError) -> PredicateNode {
        var operands = [try parseConjunction(depth: depth)]
        while consume(word: "OR") || consume(sign: "||") { operands.append(try parseConjunction(depth: depth)) }
        return operands.count == 1 ? operands[0] : .or(operands)
    }

    private mutating func parseConjunction(depth: Int) throws(PredicateError) -> PredicateNode {
        var operands = [try parseNegation(depth: depth)]
        while consume(word: "AND") || consume(sign: "&&") { operands.append(try parseNegation(depth: depth)) }
        return operands.count == 1 ? operands[0] : .and(operands)
    }

    private mutating func parseNegation(depth: Int) throws(PredicateError) -> PredicateNode {
        nodes += 1
        guard depth <= Predicate.maxDepth, nodes <= Predicate.maxNodes else {
            throw PredicateError(
                .limitExceeded,
                "the predicate is too large: at most \(Predicate.maxNodes) nodes, \(Predicate.maxDepth) deep",
                offset: token.offset
            )
        }
        if consume(word: "NOT") || consume(sign: "!") { return .not(try parseNegation(depth: depth + 1)) }
        if consume(word: "TRUEPREDICATE") { return .constant(true) }
        if consume(word: "FALSEPREDICATE") { return .constant(false) }
        if word == "NEAR" || word == "INSIDE" { return try parseRegion() }
        if token.kind == .sign("("), !isOperandInBrackets {
            position += 1
            let node = try parseAlternatives(depth: depth + 1)
            try expect(")")
            return node
        }
        return try parseComparison()
    }

    /// True if the bracket at this position opens a side of a comparison, like `(mediaSubtypes & 2)`, and not a
    /// condition: there is no operator but `&` before it closes.
    private var isOperandInBrackets: Bool {
        var index = position
        var open = 0
        while index < tokens.count {
            switch tokens[index].kind {
            case .sign("("): open += 1
            case .sign(")"):
                open -= 1
                if open == 0 {
                    guard index + 1 < tokens.count else { return false }
                    return Self.operation(tokens[index + 1]) != nil
                }
            case .sign("&"), .sign("{"), .sign(","), .sign("}"), .text, .number, .argument, .key: break
            case .word(let word) where !Self.isConnective(word) && Self.operation(tokens[index]) == nil: break
            default: return false
            }
            index += 1
        }
        return false
    }

    private static func isConnective(_ word: String) -> Bool {
        ["AND", "OR", "NOT", "ANY", "SOME", "NONE", "ALL", "NEAR", "INSIDE"].contains(word.uppercased())
    }

    private mutating func parseRegion() throws(PredicateError) -> PredicateNode {
        let start = token.offset
        let isNear = word == "NEAR"
        position += 1
        try expect("(")
        var numbers: [Double] = []
        repeat {
            guard case .json(let json) = try parseConstant(), let number = json.doubleValue else {
                throw PredicateError(.invalidPredicate, "expected a number", offset: token.offset)
            }
            numbers.append(number)
        } while consume(sign: ",")
        try expect(")")
        do throws(PredicateError) {
            return isNear ? try checker.near(numbers) : try checker.inside(numbers)
        } catch {
            throw error.at(start)
        }
    }

    // MARK: Comparisons

    private static func operation(_ token: PredicateToken) -> PredicateOperator? {
        switch token.kind {
        case .sign("="), .sign("=="): return .equal
        case .sign("!="), .sign("<>"): return .notEqual
        case .sign("<"): return .less
        case .sign("<="), .sign("=<"): return .lessOrEqual
        case .sign(">"): return .greater
        case .sign(">="), .sign("=>"): return .greaterOrEqual
        case .word(let word):
            switch word.uppercased() {
            case "BETWEEN": return .between
            case "IN": return .isIn
            case "BEGINSWITH": return .beginsWith
            case "CONTAINS": return .contains
            case "ENDSWITH": return .endsWith
            case "LIKE": return .like
            default: return nil
            }
        default: return nil
        }
    }

    private mutating func parseComparison() throws(PredicateError) -> PredicateNode {
        let start = token.offset
        let quantifier = word.flatMap { Quantifier(rawValue: $0) }
        if quantifier != nil { position += 1 }
        let left = try parseOperand()
        guard let operation = Self.operation(token) else {
            if quantifier == nil, case .key(let key) = left, key.type == .flag {
                return .comparison(key, .equal, .integer(1))
            }
            if case .word(let name) = token.kind, name.uppercased() == "MATCHES" {
                throw PredicateError(
                    .unsupportedPredicate,
                    "the operator MATCHES is not supported; use LIKE",
                    entityClass: checker.entityClass,
                    offset: token.offset,
                    allowed: PredicateOperator.allCases.map { $0.rawValue.uppercased() }
                )
            }
            throw unexpected("an operator")
        }
        position += 1
        let folding = try parseOptions()
        let right = try parseOperand()
        do throws(PredicateError) {
            return try node(quantifier, left, operation, folding, right)
        } catch {
            throw error.at(start)
        }
    }

    private mutating func parseOptions() throws(PredicateError) -> TextFolding {
        guard consume(sign: "[") else { return [] }
        guard case .word(let letters) = token.kind, let folding = TextFolding(letters: letters) else {
            throw PredicateError(.invalidPredicate, "unknown option", offset: token.offset, allowed: ["c", "d", "cd"])
        }
        position += 1
        try expect("]")
        return folding
    }

    private func node(
        _ quantifier: Quantifier?,
        _ left: Operand,
        _ operation: PredicateOperator,
        _ folding: TextFolding,
        _ right: Operand
    ) throws(PredicateError) -> PredicateNode {
        switch (left, right) {
        case (.presence(let name), .literal(let literal)) where quantifier == nil && folding.isEmpty:
            guard let condition = try checker.presenceCondition(name, operation, literal) else {
                throw .unknownKey(name, of: checker.entityClass, offset: nil)
            }
            return condition
        case (.key(let key), .literal(let literal)):
            guard let quantifier else {
                return try checker.condition(key, operation, listed(literal, operation), folding)
            }
            let any = try checker.any(key, operation, listed(literal, operation), folding)
            return quantifier == .none ? .not(any) : any
        case (.masked(let key, let mask), .literal(let literal)) where quantifier == nil && folding.isEmpty:
            return try checker.bits(key, mask: mask, operation, literal)
        case (.literal(let literal), .key(let key)) where quantifier == nil:
            return try checker.condition(key, try mirrored(operation, key), literal, folding)
        case (.literal(let literal), .masked(let key, let mask)) where quantifier == nil && folding.isEmpty:
            return try checker.bits(key, mask: mask, operation, literal)
        default:
            throw PredicateError(
                .unsupportedPredicate,
                "a comparison needs a key on one side and a constant on the other",
                entityClass: checker.entityClass
            )
        }
    }

    /// Returns the literal as a list if it is a list argument of IN or BETWEEN.
    private func listed(_ literal: PredicateLiteral, _ operation: PredicateOperator) -> PredicateLiteral {
        guard operation == .isIn || operation == .between, case .json(.array(let elements)) = literal else {
            return literal
        }
        return .list(elements.map(PredicateLiteral.json))
    }

    private func mirrored(
        _ operation: PredicateOperator,
        _ key: PredicateKey
    ) throws(PredicateError) -> PredicateOperator {
        switch operation {
        case .equal, .notEqual: return operation
        case .less: return .greater
        case .lessOrEqual: return .greaterOrEqual
        case .greater: return .less
        case .greaterOrEqual: return .lessOrEqual
        default:
            throw PredicateError(
                .unsupportedPredicate,
                "the key must be on the left of \(operation.rawValue.uppercased())"
                    + (key == .keywords ? "; use ANY keywords" : ""),
                key: key.name,
                entityClass: checker.entityClass
            )
        }
    }

    // MARK: Operands

    private mutating func parseOperand() throws(PredicateError) -> Operand {
        if consume(sign: "(") {
            // Counting the brackets needs no recursion: only brackets can precede the first word.
            var open = 1
            while consume(sign: "(") { open += 1 }
            var operand = try parseMaskedOperand()
            while open > 0 {
                try expect(")")
                open -= 1
                if open > 0 { operand = try parseMask(of: operand) }
            }
            return operand
        }
        return try parseMaskedOperand()
    }

    private mutating func parseMaskedOperand() throws(PredicateError) -> Operand {
        try parseMask(of: try parseSimpleOperand())
    }

    /// Returns the operand, with the mask if `&` follows.
    private mutating func parseMask(of left: Operand) throws(PredicateError) -> Operand {
        guard consume(sign: "&") else { return left }
        switch (left, try parseSimpleOperand()) {
        case (.key(let key), .literal(let literal)), (.literal(let literal), .key(let key)):
            return .masked(key, literal)
        default: throw unexpected("a key & a mask before")
        }
    }

    private mutating func parseSimpleOperand() throws(PredicateError) -> Operand {
        let token = token
        switch token.kind {
        case .key(let name):
            position += 1
            if checker.testsPresence(name) { return .presence(name) }
            return .key(try checker.key(name, offset: token.offset))
        case .word(let name) where Self.literal(name) == nil && name.uppercased() != "CAST":
            if Self.isConnective(name) || Self.operation(token) != nil { throw unexpected("a key or a constant") }
            position += 1
            if checker.testsPresence(name) { return .presence(name) }
            return .key(try checker.key(name, offset: token.offset))
        default: return .literal(try parseConstant())
        }
    }

    private static func literal(_ word: String) -> JSON? {
        switch word.uppercased() {
        case "TRUE", "YES": .bool(true)
        case "FALSE", "NO": .bool(false)
        case "NIL", "NULL": .null
        default: nil
        }
    }

    private mutating func parseConstant() throws(PredicateError) -> PredicateLiteral {
        switch token.kind {
        case .text(let text):
            position += 1
            return .json(.string(text))
        case .number(let json), .argument(let json):
            position += 1
            // A unit makes it a duration: `60 s`.
            if case .word(let unit) = token.kind, DurationText.units.contains(where: { $0.name == unit }),
                let number = json.doubleValue
            {
                position += 1
                return .json(.string("\(number) \(unit)"))
            }
            return .json(json)
        case .word(let name):
            if name.uppercased() == "CAST" { return try parseCast() }
            guard let literal = Self.literal(name) else { throw unexpected("a constant") }
            position += 1
            return .json(literal)
        case .sign("{"): return try parseList()
        default: throw unexpected("a constant")
        }
    }

    private mutating func parseList() throws(PredicateError) -> PredicateLiteral {
        position += 1
        var literals: [PredicateLiteral] = []
        if consume(sign: "}") { return .list(literals) }
        repeat {
            guard token.kind != .sign("{") else { throw unexpected("a constant") }
            literals.append(try parseConstant())
        } while consume(sign: ",")
        try expect("}")
        return .list(literals)
    }

    /// Seconds from 1970 to 2001, the epoch of Apple's dates.
    private static let referenceDate = 978_307_200.0

    /// Parses `CAST("2024-05-01T00:00:00Z", "NSDate")`, or with seconds since 2001 as NSPredicate prints them.
    private mutating func parseCast() throws(PredicateError) -> PredicateLiteral {
        let start = token.offset
        position += 1
        try expect("(")
        let json: JSON
        switch token.kind {
        case .text(let text): json = .string(text)
        case .number(let value), .argument(let value): json = value
        default: throw unexpected("a date")
        }
        position += 1
        try expect(",")
        guard case .text("NSDate") = token.kind else { throw unexpected("\"NSDate\"") }
        position += 1
        try expect(")")
        if let date = json.stringValue.flatMap(Timestamp.parse) { return .date(date) }
        if let seconds = json.doubleValue, abs(seconds) < 1e11 {
            return .date(Int64(((seconds + Self.referenceDate) * 1_000_000).rounded()))
        }
        throw PredicateError(
            .invalidPredicate,
            "CAST requires RFC 3339 text or seconds since 2001, and \"NSDate\"",
            offset: start
        )
    }
}

public import JSONValue

/// The position of a member in an ordered collection, as text that sorts by its bytes.
///
/// There is a key between any two keys, so moving one member writes one row. Keys are the digits of a fraction in base
/// 62 without trailing zeros. Appending produces short keys; repeated insertions at the same position produce longer
/// ones, whose length grows slowly if each is beside the last one.
public struct OrderKey: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The digits of the key.
    public let text: String

    private static let digits = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    private static let value: [UInt8: Int] = Dictionary(
        uniqueKeysWithValues: digits.enumerated().map { ($1, $0) }
    )
    /// The maximum length of a key in bytes. Longer ones would need about 100,000 insertions at the same position, or
    /// 400 that are each between the last two.
    public static let maxBytes = 512

    /// Parses a key; `nil` for text that cannot be one.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty, bytes.count <= Self.maxBytes, bytes.allSatisfy({ Self.value[$0] != nil }),
            bytes.last != Self.digits[0]
        else { return nil }
        self.text = text
    }

    private init(digits: [Int]) { self.text = String(decoding: digits.map { Self.digits[$0] }, as: UTF8.self) }

    public var description: String { text }

    public static func < (left: OrderKey, right: OrderKey) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    /// Returns a key after another one; `nil` is the open end.
    public static func after(_ lower: OrderKey?) -> OrderKey {
        let low = lower?.digitValues ?? []
        return OrderKey(digits: trimmed(step(low) ?? midpoint(low, nil)))
    }

    /// Returns keys in ascending order after another one.
    public static func keys(count: Int, after lower: OrderKey?) -> [OrderKey] {
        var keys: [OrderKey] = []
        keys.reserveCapacity(max(0, count))
        var last = lower?.digitValues ?? []
        while keys.count < count {
            guard let next = step(last) else { return keys + spread(count - keys.count, last, nil) }
            last = next
            keys.append(OrderKey(digits: trimmed(next)))
        }
        return keys
    }

    /// Returns keys in ascending order between two others, evenly spaced so that they stay short; `nil` is the open
    /// end.
    ///
    /// - Throws: ``OutOfOrder`` if `lower` is not before `upper`
    public static func keys(
        count: Int,
        between lower: OrderKey?,
        and upper: OrderKey?
    ) throws(OutOfOrder) -> [OrderKey] {
        // Appending is by far the most common case, and albums with the newest first are filled from the front: count
        // the leading digits up or down in both cases instead of halving the remaining space.
        guard count > 0 else { return [] }
        guard let upper else { return keys(count: count, after: lower) }
        guard let lower else { return prepended(count, before: upper.digitValues) }
        guard lower < upper else { throw OutOfOrder(lower: lower, upper: upper) }
        let (low, high) = (lower.digitValues, upper.digitValues)
        return besideLonger(count, low, high) ?? spread(count, low, high)
    }

    /// An error for two keys that are not in ascending order.
    public struct OutOfOrder: Error, CustomStringConvertible {
        let lower: OrderKey
        let upper: OrderKey

        public var description: String { "order keys \(lower) and \(upper) are out of order" }
    }

    /// The values of the digits.
    private var digitValues: [Int] { text.utf8.map { Self.value[$0] ?? 0 } }

    /// The number of leading digits that appended keys count up; 62^6 keys fit before keys must become longer.
    private static let stepDigits = 6

    /// Returns the leading digits plus one; nil if they are at their maximum.
    private static func step(_ low: [Int]) -> [Int]? {
        var digits = Array((low + Array(repeating: 0, count: stepDigits)).prefix(stepDigits))
        if low.isEmpty { digits[0] = 1 }
        for position in digits.indices.reversed() {
            if digits[position] < 61 {
                digits[position] += 1
                return digits
            }
            digits[position] = 0
        }
        return nil
    }

    private static func prepended(_ count: Int, before high: [Int]) -> [OrderKey] {
        let number = (0..<stepDigits).reduce(0) { $0 * 62 + ($1 < high.count ? high[$1] : 0) }
        guard number > count else { return spread(count, [], high) }
        return ((number - count)..<number).map { OrderKey(digits: trimmed(digits(of: $0))) }
    }

    /// The length above which a key indicates a crowded position: about forty insertions that each halved the space.
    private static let crowdedDigits = 8

    /// Returns keys at a crowded position, next to the longer one of its ends; nil for any other position.
    ///
    /// The longer key is the last one that was inserted, and the next insertion is nearly always on the same side of it
    /// again, where 63 of 64 parts of the space are left. Halving would make the key longer by a bit each time.
    private static func besideLonger(_ count: Int, _ low: [Int], _ high: [Int]) -> [OrderKey]? {
        guard max(low.count, high.count) > crowdedDigits, low.count != high.count else { return nil }
        func digit(_ digits: [Int], _ position: Int) -> Int { position < digits.count ? digits[position] : 0 }
        // The distance of the ends in units of the last examined digit.
        var (length, distance) = (0, 0)
        repeat {
            distance = 62 * distance + digit(high, length) - digit(low, length)
            length += 1
        } while distance < 64 * count
        let step = distance / (64 * count)
        let isLow = low.count > high.count
        let start = (0..<length).map { digit(isLow ? low : high, $0) }
        return (0..<count).map { index in
            OrderKey(digits: trimmed(adding(step * (isLow ? index + 1 : index - count), to: start)))
        }
    }

    /// Adds a number, which may be negative, to digits.
    private static func adding(_ number: Int, to digits: [Int]) -> [Int] {
        var (sum, rest) = (digits, number)
        for position in sum.indices.reversed() where rest != 0 {
            rest += sum[position]
            sum[position] = (rest % 62 + 62) % 62
            rest = (rest - sum[position]) / 62
        }
        return sum
    }

    /// Returns the leading digits of a number.
    private static func digits(of number: Int) -> [Int] {
        var rest = number
        var digits: [Int] = []
        for _ in 0..<stepDigits {
            digits.append(rest % 62)
            rest /= 62
        }
        return digits.reversed()
    }

    private static func trimmed(_ digits: [Int]) -> [Int] {
        var result = digits
        while result.last == 0 { result.removeLast() }
        return result
    }

    private static func spread(_ count: Int, _ low: [Int], _ high: [Int]?) -> [OrderKey] {
        guard count > 0 else { return [] }
        let middle = count / 2
        let key = midpoint(low, high)
        return spread(middle, low, key) + [OrderKey(digits: key)] + spread(count - middle - 1, key, high)
    }

    /// Returns a fraction strictly between two others; `high == nil` is one.
    private static func midpoint(_ low: [Int], _ high: [Int]?) -> [Int] {
        var result: [Int] = []
        var upper = high
        var position = 0
        while true {
            let a = position < low.count ? low[position] : 0
            let b = upper.map { position < $0.count ? $0[position] : 0 } ?? 62
            if b - a > 1 {
                result.append(a + (b - a) / 2)
                return result
            }
            result.append(a)
            if b > a { upper = nil }
            position += 1
        }
    }
}

extension JSONType where Value == OrderKey {
    /// The type of an order key.
    public static var orderKey: JSONType {
        JSONType(
            schema: ["type": "string", "maxLength": JSON(OrderKey.maxBytes)],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let text = json.stringValue, let key = OrderKey(text) else {
                    throw JSONProblem("expected an order key")
                }
                return key
            },
            encode: { .string($0.text) }
        )
    }
}

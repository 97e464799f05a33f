/// A number as a fraction of whole numbers, the form in which EXIF stores it: 2.8 is 28/10.
public struct Rational: Sendable, Hashable, CustomStringConvertible {
    /// 0 or more.
    public let numerator: Int
    /// 1 or more.
    public let denominator: Int

    /// Creates the fraction with the smallest denominator, at most 1,000,000, whose value is the number; the nearest
    /// one if there is none.
    ///
    /// - Parameter number: 0 to 2,000,000,000
    public init(_ number: Double) {
        let number = min(2e9, max(0, number))
        // Convergents of the continued fraction.
        var (numerator, denominator) = (number.rounded(.down), 1.0)
        var (before, beforeDenominator) = (1.0, 0.0)
        var rest = number - numerator
        while rest > 1e-12, numerator / denominator != number {
            let whole = (1 / rest).rounded(.down)
            rest = 1 / rest - whole
            let next = (whole * numerator + before, whole * denominator + beforeDenominator)
            guard next.0 <= 4e9, next.1 <= 1e6 else { break }
            (before, beforeDenominator, numerator, denominator) = (numerator, denominator, next.0, next.1)
        }
        self.numerator = Int(numerator)
        self.denominator = Int(denominator)
    }

    public var description: String { "\(numerator)/\(denominator)" }
}

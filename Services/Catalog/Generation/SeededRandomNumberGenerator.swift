import Basics
/// A seeded generator of random numbers (SplitMix64).
struct SeededRandomNumberGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// Returns true in the given percentage of cases.
    mutating func chance(_ percent: Double) -> Bool { Double.random(in: 0..<100, using: &self) < percent }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &self)]
    }

    /// Returns a number with an approximately normal distribution, mean 0 and standard deviation 1.
    mutating func normal() -> Double {
        (0..<6).reduce(0.0) { sum, _ in sum + Double.random(in: -1...1, using: &self) } / 1.4
    }

    /// Returns 32 random hexadecimal digits.
    mutating func name() -> String { nextHexadecimal() }
}

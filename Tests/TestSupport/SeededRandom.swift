#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Random numbers that can be had again: SplitMix64.
///
/// A test makes its own with ``init(named:)``, which prints the seed. `SAFELIGHT_SEED=… swift test` repeats the run.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    public let seed: UInt64
    private var state: UInt64

    public init(seed: UInt64) {
        self.seed = seed
        self.state = seed
    }

    /// A generator with the seed of the run, different for each name; prints both.
    public init(named name: String) {
        let run = Self.runSeed
        print("seed of \(name): SAFELIGHT_SEED=\(run)")
        // FNV-1a of the name: tests do not see each other's numbers.
        let hash = name.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        self.init(seed: run ^ hash)
    }

    /// The seed of this run: from the environment, else a new one.
    public static let runSeed: UInt64 =
        TestEnvironment.text("SAFELIGHT_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: 0...999_999_999)

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// True once in `count` times.
    public mutating func one(in count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

    /// One of a list that is not empty.
    public mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &self)]
    }
}

/// The environment of the test run.
public enum TestEnvironment {
    public static func text(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        return String(cString: value)
    }

    /// How often a random test goes round: `short`, or `SAFELIGHT_SOAK` times as often where that is set.
    public static func rounds(_ short: Int) -> Int {
        short * max(1, text("SAFELIGHT_SOAK").flatMap { Int($0) } ?? 1)
    }
}

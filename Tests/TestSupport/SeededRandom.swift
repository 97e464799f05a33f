#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A reproducible random number generator: SplitMix64.
///
/// A test creates its own with ``init(named:)``, which prints the seed. `SAFELIGHT_SEED=… swift test` repeats the run.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    /// The initial state.
    public let seed: UInt64
    private var state: UInt64

    /// Creates a generator with a fixed seed.
    public init(seed: UInt64) {
        self.seed = seed
        self.state = seed
    }

    /// Creates a generator whose seed derives from the run's seed and the name; prints both.
    public init(named name: String) {
        let run = Self.runSeed
        print("seed of \(name): SAFELIGHT_SEED=\(run)")
        // FNV-1a of the name, so that tests use independent numbers.
        let hash = name.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        self.init(seed: run ^ hash)
    }

    /// The seed of this run: `SAFELIGHT_SEED`, else a random one.
    public static let runSeed: UInt64 =
        TestEnvironment.text("SAFELIGHT_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: 0...999_999_999)

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns random bytes.
    ///
    /// They are generated in this module because it is optimised in debug builds too.
    public mutating func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count {
            var number = next()
            for _ in 0..<min(8, count - bytes.count) {
                bytes.append(UInt8(truncatingIfNeeded: number))
                number >>= 8
            }
        }
        return bytes
    }

    /// Returns true with a probability of 1 in `count`.
    public mutating func one(in count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

    /// Returns true in the given percentage of cases.
    public mutating func chance(_ percent: Double) -> Bool { Double.random(in: 0..<100, using: &self) < percent }

    /// Returns a random element of a non-empty list.
    public mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &self)]
    }
}

/// The environment of the test run.
public enum TestEnvironment {
    /// Returns the value of an environment variable; nil if it is not set.
    public static func text(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        return String(cString: value)
    }

    /// Returns the number of rounds of a random test: `short`, times `SAFELIGHT_SOAK` if that is set.
    public static func rounds(_ short: Int) -> Int {
        short * max(1, text("SAFELIGHT_SOAK").flatMap { Int($0) } ?? 1)
    }
}

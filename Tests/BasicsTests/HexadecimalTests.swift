import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct HexadecimalTests {
    @Test func `bytes are encoded as hexadecimal digits and decoded from them`() {
        #expect([UInt8]([0, 1, 0x7F, 0xA0, 0xFF]).hexadecimal == "00017fa0ff")
        #expect([UInt8](hexadecimal: "00017fa0ff") == [0, 1, 0x7F, 0xA0, 0xFF])
        for text in ["0", "0g", "0A", "é0"] { #expect([UInt8](hexadecimal: text) == nil) }
        var random = SeededRandom(named: "hexadecimal")
        let name = random.nextHexadecimal()
        #expect(name.utf8.count == 32 && [UInt8](hexadecimal: name)?.count == 16)
    }

    @Test func `time-ordered names sort by the time, and have the form of a UUID of version 7`() {
        var random = SystemRandomNumberGenerator()
        // The example of RFC 9562, appendix A.6.
        let name = random.nextTimeOrderedHexadecimal(milliseconds: 0x017F_22E2_79B0)
        #expect(name.count == 32)
        #expect(name.hasPrefix("017f22e279b07"))
        let variant = Array(name)[16]
        #expect("89ab".contains(variant))
        let times: [Int64] = [0, 1, 255, 256, 1_700_000_000_000, 1_700_000_000_001, 1 << 48 - 1]
        let names = times.map { random.nextTimeOrderedHexadecimal(milliseconds: $0) }
        #expect(names == names.sorted())
        #expect(Set((0..<1000).map { _ in random.nextTimeOrderedHexadecimal(milliseconds: 7) }).count == 1000)
    }
}

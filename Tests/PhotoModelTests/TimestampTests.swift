import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct TimestampTests {
    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0 as Int64),
        ("1970-01-01", 0),
        ("2024-05-01T00:00:00Z", 1_714_521_600_000_000),
        ("2024-05-01T02:00:00.25+02:00", 1_714_521_600_250_000),
        ("2024-04-30t23:59:59.999999999-00:00", 1_714_521_599_999_999),
        ("2024-02-29 12:00:00z", 1_709_208_000_000_000),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
        ("1969-12-31T23:59:59.5Z", -500_000),
        ("2000-03-01T00:00:00Z", 951_868_800_000_000),
    ])
    func `RFC 3339 text is parsed`(text: String, microseconds: Int64) {
        #expect(Timestamp.parse(text) == microseconds)
    }

    @Test(arguments: [
        "", "2024", "2024-5-1", "2024-13-01", "2024-00-01", "2023-02-29", "1900-02-29", "2024-04-31", "0000-01-01",
        "2024-05-01T", "2024-05-01T24:00:00Z", "2024-05-01T00:60:00Z", "2024-05-01T00:00:60Z", "2024-05-01T00:00:00",
        "2024-05-01T00:00:00.Z", "2024-05-01T00:00:00.1234567890Z", "2024-05-01T00:00:00+2:00",
        "2024-05-01T00:00:00Z ", "2024-05-01T00:00:00+24:00", " 2024-05-01", "2024-05-01Z", "２０２４-05-01",
    ])
    func `other text is refused`(text: String) {
        #expect(Timestamp.parse(text) == nil)
    }

    @Test func `formatted timestamps are parsed back`() {
        var random = SeededRandom(named: "timestamps")
        for _ in 0..<TestEnvironment.rounds(5000) {
            let microseconds = Int64.random(in: Timestamp.range, using: &random)
            #expect(Timestamp.parse(Timestamp.text(microseconds)) == microseconds)
        }
        #expect(Timestamp.text(0) == "1970-01-01T00:00:00Z")
        #expect(Timestamp.text(1_714_521_600_250_000) == "2024-05-01T00:00:00.250000Z")
        #expect(Timestamp.text(.max) == "9999-12-31T23:59:59.999999Z")
        #expect(Timestamp.text(.min) == "0001-01-01T00:00:00Z")
    }
}

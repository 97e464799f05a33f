import PhotoModel
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(5)))
struct TextTests {
    @Test(arguments: [
        ("plain name.jpg", "plain name.jpg"),
        ("two\nlines", "two\\nlines"),
        ("\u{1B}[31mred\u{1B}[0m", "\\u{1b}[31mred\\u{1b}[0m"),
        ("tab\there\r", "tab\\there\\r"),
        ("photo\u{202E}gpj.exe", "photo\\u{202e}gpj.exe"),
        ("\u{9B}2J", "\\u{9b}2J"),
        ("Füße 写真 👩‍👩‍👧", "Füße 写真 👩‍👩‍👧"),
    ])
    func `control characters in a name are escaped`(text: String, printed: String) {
        #expect(text.printable == printed)
    }

    @Test func `quotes and brackets are escaped in a page, also before a combining mark`() {
        let text = "\"\u{301} onmouseover=\"alert(1)\" <\u{301}b>\u{301} &\u{301}"
        let escaped = "&quot;\u{301} onmouseover=&quot;alert(1)&quot; &lt;\u{301}b&gt;\u{301} &amp;\u{301}"
        #expect(SheetPage.escaped(text) == escaped)
    }

    @Test func `long names are shortened in the middle`() {
        #expect("abcdefghijklmnopqrstuvwxyz".shortened(to: 10) == "abcdef…xyz")
        #expect("short".shortened(to: 10) == "short")
    }

    @Test func `the columns of a table are aligned`() {
        var table = TextTable([
            .init(title: "name", width: 8), .init(title: "photos", alignment: .right), .init(title: "note"),
        ])
        table.add(["Summer", "12", "ok"])
        table.add(["A very long title", "1340", ""])
        table.add(["odd\u{7}"])
        #expect(
            table.lines == [
                "name      photos  note",
                "Summer        12  ok",
                "A ver…le    1340",
                "odd\\u{7}",
            ]
        )
    }

    @Test(arguments: [
        (0, nil, "1970-01-01 00:00:00", " UTC"),
        (1_714_573_800_250_000, 7200, "2024-05-01 16:30:00", ".25 +02:00"),
        (1_714_573_800_000_000, -12_600, "2024-05-01 11:00:00", " -03:30"),
        (Int64.max, 3600, "9999-12-31 23:59:59", ".999999 +01:00"),
    ])
    func `an instant is formatted with its own offset, to the second or exactly`(
        microseconds: Int64,
        offset: Int?,
        text: String,
        rest: String
    ) throws {
        let zone = try #require(rest.firstIndex(of: " "))
        #expect(QuantityFormatter.shortTime(microseconds, offset: offset) == text)
        #expect(QuantityFormatter.time(microseconds, offset: offset) == text + rest[zone...])
        #expect(QuantityFormatter.exactTime(microseconds, offset: offset) == text + rest)
    }

    @Test func `sizes, durations, rates and locations are formatted`() {
        #expect(QuantityFormatter.bytes(0) == "0 bytes")
        #expect(QuantityFormatter.bytes(999) == "999 bytes")
        #expect(QuantityFormatter.bytes(1500) == "1.5 kB")
        #expect(QuantityFormatter.bytes(Int64.max) == "9223372.0 TB")
        #expect(QuantityFormatter.clock(.seconds(7)) == "0:07")
        #expect(QuantityFormatter.clock(.seconds(3723)) == "1:02:03")
        #expect(QuantityFormatter.clock(.seconds(-1)) == "0:00")
        #expect(QuantityFormatter.rate(12.34) == "12.3")
        #expect(QuantityFormatter.rate(1234.5) == "1235")
        #expect(
            QuantityFormatter.location(Location(latitude: -24.73, longitude: 15.3, altitude: 590))
                == "24.73000 S 15.30000 E, 590 m"
        )
    }

    @Test func `progress shows rate and remaining time of the last ten seconds`() {
        var meter = ProgressMeter(total: 1000)
        #expect(meter.rate == nil)
        #expect(meter.line == "0/1000")
        for step in 1...100 { meter.step(at: .milliseconds(step * 100)) }
        #expect(meter.line == "100/1000, 10.0/s, 1:30 left")
        // The work becomes ten times slower; after the window only the new rate counts.
        for step in 1...15 { meter.step(at: .seconds(10 + step)) }
        let rate = meter.rate ?? 0
        #expect((0.9...1.1).contains(rate))
        #expect(meter.bar(width: 10).hasPrefix("[#.........] 115/1000"))
    }

    @Test func `progress with a total of zero or beyond the total is valid`() {
        var empty = ProgressMeter(total: 0)
        #expect(empty.fraction == 1)
        empty.step(at: .zero)
        #expect(empty.rate == nil)
        empty.step(at: .seconds(1))
        #expect(empty.remaining == .zero)
        #expect(empty.bar(width: 4).hasPrefix("[####]"))
    }

    @Test func `an error after some of the assets is a partial success`() {
        let error = CommandFailure(message: "there is no such album", name: "identifier_not_found")
        let first = CommandFailure(error, after: 0, of: 2500)
        #expect(first.message == error.message && first.status == .refused)
        let later = CommandFailure(error, after: 1000, of: 2500)
        #expect(later.message == "stopped after 1000 of 2500 assets: there is no such album" && later.status == .partly)
        #expect(later.name == error.name)
    }
}

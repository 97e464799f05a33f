import Foundation
import TestSupport
import Testing

/// The rows of the specification: which tests show which, by their `.spec("S-16", …)` marks.
///
/// A test that is disabled, or that needs what this machine lacks, shows nothing.
@Suite(.timeLimit(.minutes(5)))
struct SpecTests {
    let house: House

    init() throws { house = try House.read() }

    /// A row and the tests that show it, as `Room: name of the test`.
    private var shown: [String: [String]] {
        var shown: [String: [String]] = [:]
        for file in house.files where file.path.hasPrefix("Tests/") && file.room != "TidyTests" {
            for mark in SpecMark.all(in: file.source.withoutComments) where mark.isEnabled && mark.canRun {
                for row in mark.rows { shown[row, default: []].append("\(file.room): \(mark.test)") }
            }
        }
        return shown
    }

    @Test func `the rows with a test are told by name`() {
        let rows = shown.keys.sorted(by: SpecMark.areInOrder)
        print("spec rows with a test: \(rows.count): \(rows.joined(separator: " "))")
        for row in rows { #expect(row.wholeMatch(of: SpecMark.name) != nil, "\"\(row)\" is no row") }
    }

    @Test func `every row that the README claims has a test`() throws {
        let text = try String(contentsOf: house.root.appending(path: "README.md"), encoding: .utf8)
        let claimed = SpecMark.claimed(in: text)
        #expect(!claimed.isEmpty, "README.md has no list under \"Spec rows\"")
        let shown = shown
        let skipped = Set(
            house.files.filter { $0.path.hasPrefix("Tests/") }.flatMap { file in
                SpecMark.all(in: file.source.withoutComments).filter { $0.isEnabled && !$0.canRun }.flatMap(\.rows)
            }
        )
        for row in claimed where shown[row] == nil {
            if skipped.contains(row), !Needed.isRequired {
                TestPlace.say("\(row) is not shown here: the tools that its tests need are missing")
                continue
            }
            Issue.record("README.md claims \(row), and no test is marked .spec(\"\(row)\")")
        }
    }

    @Test func `marks and ranges are understood`() {
        let source = """
            @Test(.spec("S-16", "T-07"), .timeLimit(.minutes(1)))
            func `members keep their order`() {}
            @Suite(.spec("D10"))
            struct Orders {}
            """
        let marks = SpecMark.all(in: source)
        #expect(marks.map(\.rows) == [["S-16", "T-07"], ["D10"]])
        #expect(marks.map(\.test) == ["members keep their order", "Orders"])
        #expect(marks.map(\.isEnabled) == [true, false], "a suite without tests shows nothing")
        let others = """
            @Suite(.serialized)
            struct Things {
                @Test(.disabled("later"), .spec("S-01")) func `one`() {}
                @Test(.spec("S-02"), .enabled(if: false)) func `two`() {}
                let text = ".spec(\\"S-03\\")"
                func helper() {}
                @Test(.spec("S-04")) func `four`() throws { let path = try Needed.program("no-such-program") }
                @Test(.spec("S-05")) func `five`() {}
            }
            """
        let found = SpecMark.all(in: others)
        #expect(found.filter { $0.isEnabled && $0.canRun }.flatMap(\.rows) == ["S-05"])
        #expect(found.filter { $0.isEnabled && !$0.canRun }.flatMap(\.rows) == ["S-04"])
        let none = "@Suite(.disabled(\"later\")) struct None { @Test(.spec(\"S-06\")) func six() {} }"
        #expect(SpecMark.all(in: none).allSatisfy { !$0.isEnabled })
        let text = "# A\nS-99\n## Spec rows\n\nS-01 to S-03, D10; P-05.\n\n## Next\nT-01\n"
        #expect(SpecMark.claimed(in: text) == ["S-01", "S-02", "S-03", "D10", "P-05"])
    }
}

/// A `.spec(…)` and the test that it stands at.
struct SpecMark {
    let rows: [String]
    let test: String
    /// Whether it stands in the attribute of a test, or of a suite with tests, that is not disabled.
    let isEnabled: Bool
    /// Whether this machine has the programs and photographs that the test asks for.
    let canRun: Bool

    static var name: Regex<Substring> { /[STP]-\d\d|D\d\d?/ }

    static func all(in source: String) -> [SpecMark] {
        let isSuiteDisabled = source.contains(/@Suite\([^{]*(?:\.disabled\(|\.enabled\(if: false)/)
        return source.matches(of: /\.spec\(([^)]*)\)/).map { match in
            let rows = match.1.matches(of: /"([^"]*)"/).map { String($0.1) }
            let rest = source[match.range.upperBound...]
            let name = rest.firstMatch(of: /\b(?:func|struct|class)\s+(?:`([^`]*)`|(\w+))/)
            // From the beginning of the attribute to the name, and from there to the next test.
            let before = source[..<match.range.lowerBound]
            let test = before.ranges(of: "@Test").last?.lowerBound
            let suite = before.ranges(of: "@Suite").last?.lowerBound
            let start = max(test ?? source.startIndex, suite ?? source.startIndex)
            let attribute = source[start..<(name?.range.lowerBound ?? source.endIndex)]
            let body = source[(name?.range.upperBound ?? source.endIndex)...]
            let isSuite = suite == start && test != start
            let isAttribute =
                (test != nil || suite != nil)
                && !source[start..<match.range.lowerBound].contains(/\b(?:func|struct|class)\b/)
            let isDisabled = isSuiteDisabled || attribute.contains(/\.disabled\(|\.enabled\(if: false/)
            let own = isSuite ? body : body.prefix(upTo: body.ranges(of: "@Test").first?.lowerBound ?? body.endIndex)
            return SpecMark(
                rows: rows,
                test: String(name?.1 ?? name?.2 ?? "?"),
                isEnabled: isAttribute && !isDisabled && (!isSuite || body.contains("@Test")),
                canRun: isSuite || hasAll(own)
            )
        }
    }

    /// Whether everything is there that a test asks ``Needed`` for.
    private static func hasAll(_ body: Substring) -> Bool {
        let programs = body.matches(of: /Needed\.program\("([^"]+)"\)/).map { String($0.1) }
        guard programs.allSatisfy({ TestPlace.program($0) != nil || Tool.path($0) != nil }) else { return false }
        if body.contains("Needed.photographs("), SharedPhotos.folder == nil { return false }
        return !body.contains("Needed.python(") || TestPlace.program("python3") != nil
    }

    /// The rows in the section "Spec rows" of a text; `S-01 to S-09` stands for all of them.
    static func claimed(in text: String) -> [String] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let start = lines.firstIndex(where: { $0.hasPrefix("#") && $0.hasSuffix("Spec rows") }) else { return [] }
        let section = lines[(start + 1)...].prefix { !$0.hasPrefix("#") }.joined(separator: " ")
        var rows: [String] = []
        for match in section.matches(of: /([STP]-|D)(\d+)(?:\s+to\s+[STP]?-?D?(\d+))?/) {
            guard let first = Int(match.2) else { continue }
            for number in first...max(first, match.3.flatMap { Int($0) } ?? first) {
                let digits = match.1 == "D" || number > 9 ? "\(number)" : "0\(number)"
                rows.append(match.1 + digits)
            }
        }
        return rows
    }

    /// S before T before P before D, then by number.
    static func areInOrder(_ left: String, _ right: String) -> Bool {
        func place(_ row: String) -> (Int, Int) {
            (Array("STPD").firstIndex(of: row.first ?? "D") ?? 4, Int(row.filter(\.isNumber)) ?? 0)
        }
        return place(left) < place(right)
    }
}

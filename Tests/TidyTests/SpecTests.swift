import Foundation
import TestSupport
import Testing

/// Tests of the specification rows that tests cover, in accordance with their `.spec("S-16", …)` marks.
///
/// A test that is disabled, or that needs something this machine lacks, covers no row.
@Suite(.timeLimit(.minutes(5)))
struct SpecTests {
    let tree: SourceTree

    init() throws { tree = try SourceTree.read() }

    /// The covered rows with their tests, as `Module: name of the test`.
    private var covered: [String: [String]] {
        var covered: [String: [String]] = [:]
        for file in tree.files where file.path.hasPrefix("Tests/") && file.module != "TidyTests" {
            for mark in SpecMark.all(in: file.source.withoutComments) where mark.isEnabled && mark.canRun {
                for row in mark.rows { covered[row, default: []].append("\(file.module): \(mark.test)") }
            }
        }
        return covered
    }

    /// The files whose tests cover a row, as `Module/File`.
    private var coveringFiles: [String: Set<String>] {
        var covered: [String: Set<String>] = [:]
        for file in tree.files where file.path.hasPrefix("Tests/") && file.module != "TidyTests" {
            for mark in SpecMark.all(in: file.source.withoutComments)
            where mark.isEnabled && (mark.canRun || !Needed.isRequired) {
                for row in mark.rows {
                    covered[row, default: []].insert("\(file.module)/\(file.name.replacing(".swift", with: ""))")
                }
            }
        }
        return covered
    }

    @Test func `the names of the rows with a test are printed`() {
        let rows = covered.keys.sorted(by: SpecMark.areInOrder)
        print("spec rows with a test: \(rows.count): \(rows.joined(separator: " "))")
        for row in rows { #expect(row.wholeMatch(of: SpecMark.name) != nil, "\"\(row)\" is not a row name") }
    }

    private func table() throws -> [SpecRow] {
        SpecRow.all(in: try Documentation.text("Shared/docs/photokit.md", of: tree))
    }

    @Test func `every row that is claimed to work has a test, and the tests that it names cover it`() throws {
        let rows = try table()
        #expect(rows.count > 150, "photokit.md has no table of rows")
        #expect(Set(rows.map(\.name)).count == rows.count, "a row is in photokit.md twice")
        let covered = coveringFiles
        for row in rows {
            #expect(SpecRow.states.contains(row.state), "\(row.name): \"\(row.state)\" is not a state")
            #expect(row.meaning.count > 3, "\(row.name) has no meaning")
            for test in row.tests where covered[row.name]?.contains(test) != true {
                Issue.record("photokit.md names \(test) for \(row.name), and it has no .spec(\"\(row.name)\")")
            }
            if row.isClaimed { #expect(!row.tests.isEmpty, "photokit.md claims \(row.name) without a test") }
            if row.state == "not built" { #expect(row.tests.isEmpty, "\(row.name) has tests, so it is built") }
        }
    }

    @Test func `every row that a test covers is claimed`() throws {
        let claimed = Set(try table().filter { $0.state != "not built" }.map(\.name))
        for row in covered.keys where !claimed.contains(row) { Issue.record("photokit.md does not claim \(row)") }
    }

    @Test func `marks and rows are parsed`() {
        let source = """
            @Test(.spec("S-16", "T-07"), .timeLimit(.minutes(1)))
            func `members keep their order`() {}
            @Suite(.spec("D10"))
            struct Orders {}
            """
        let marks = SpecMark.all(in: source)
        #expect(marks.map(\.rows) == [["S-16", "T-07"], ["D10"]])
        #expect(marks.map(\.test) == ["members keep their order", "Orders"])
        #expect(marks.map(\.isEnabled) == [true, false], "a suite without tests covers nothing")
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
        let text =
            "| row | a | b | c | d |\n| --- | --- | --- | --- | --- |\n| D10 | x | done | Y. | `ATests/BTests` |\n"
        let row = SpecRow.all(in: text)
        #expect(row.map(\.name) == ["D10"] && row.map(\.isClaimed) == [true] && row[0].tests == ["ATests/BTests"])
    }
}

/// A `.spec(…)` mark and the test it belongs to.
struct SpecMark {
    let rows: [String]
    let test: String
    /// True if it is in the attribute of a test, or of a suite with tests, that is not disabled.
    let isEnabled: Bool
    /// True if this machine has the programs and photos that the test requires.
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
                canRun: isSuite || hasRequirements(of: own)
            )
        }
    }

    /// Returns true if everything that a test requires with ``Needed`` is present.
    private static func hasRequirements(of body: Substring) -> Bool {
        let programs = body.matches(of: /Needed\.program\("([^"]+)"\)/).map { String($0.1) }
        guard programs.allSatisfy({ TestPaths.program($0) != nil || ExternalTool.path($0) != nil }) else {
            return false
        }
        if body.contains("Needed.photographs("), SharedPhotos.folder == nil { return false }
        return !body.contains("Needed.python(") || TestPaths.program("python3") != nil
    }

    /// Returns true if the rows are in order: S before T before P before D, then by number.
    static func areInOrder(_ left: String, _ right: String) -> Bool {
        func rank(_ row: String) -> (Int, Int) {
            (Array("STPD").firstIndex(of: row.first ?? "D") ?? 4, Int(row.filter(\.isNumber)) ?? 0)
        }
        return rank(left) < rank(right)
    }
}

/// A line of the tables in photokit.md.
struct SpecRow {
    let name: String
    let state: String
    let meaning: String
    /// The files with its tests, as `Module/File`.
    let tests: [String]

    static let states = ["done", "differs", "partly", "not built"]

    /// True if the page claims that the row works.
    var isClaimed: Bool { state == "done" || state == "differs" }

    static func all(in text: String) -> [SpecRow] {
        text.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard line.hasPrefix("|"), cells.count == 5, cells[0].wholeMatch(of: SpecMark.name) != nil else {
                return nil
            }
            let tests = cells[4].matches(of: /`([^`]+)`/).map { String($0.1) }
            return SpecRow(name: cells[0], state: cells[2], meaning: cells[3], tests: tests)
        }
    }
}

import Foundation
import JSONValue
import TestSupport
import Testing

@testable import PhotoModel

/// Allowed options of `convert` are translated to operations; others are refused with an error that names them.
@Suite(.timeLimit(.minutes(1)))
struct MagickOptionsTests {
    private static func list(_ text: String, _ size: (width: Int, height: Int)? = (240, 160)) throws -> [Adjustment] {
        try MagickOptions(text).operations(for: size)
    }

    @Test(arguments: MagickFragments.accepted) func `allowed options are translated`(text: String) throws {
        let operations = try Self.list(text)
        #expect(!operations.isEmpty || text.contains(">"), "\(text)")
        // The stored list does not contain the options.
        let list = AdjustmentList(operations: operations)
        #expect(try AdjustmentList(json: JSON(parsing: list.json.bytes)) == list)
    }

    @Test func `other options are refused with an error that names them`() {
        for refused in MagickFragments.refused {
            do {
                let operations = try Self.list(refused.text)
                Issue.record("\(refused.text.prefix(60)) became \(operations.map(\.json.text))")
            } catch {
                let text = "\(error)"
                #expect(text.contains(refused.errorPart), "\(refused.text.prefix(60)): \(text.prefix(200))")
                #expect(text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }, "\(text)")
            }
        }
    }

    @Test func `a text is split into words with quotes as in a shell, and nothing is expanded`() throws {
        let words = try MagickWord.split(#" a 'b c'"d\"e" \x\  "" f\#t"#)
        #expect(words.map(\.text) == ["a", #"b cd"e"#, "x ", "", "f"])
        #expect(words.map(\.position) == [2, 4, 16, 21, 24])
        #expect(try MagickWord.split("'a$b`|;&' \\$").map(\.text) == ["a$b`|;&", "$"])
    }

    @Test func `the documented options are those that are allowed`() throws {
        let page = try String(contentsOfFile: TestPaths.package + "/Shared/docs/editing.md", encoding: .utf8)
        let section = page.components(separatedBy: "### Options of convert").last ?? ""
        let rows = (section.components(separatedBy: "\n## ").first ?? "").split(separator: "\n").filter {
            $0.hasPrefix("| `")
        }
        let cells = rows.flatMap { $0.split(separator: "|").prefix(1) }.joined(separator: " ")
        let named = Set(
            cells.split(separator: "`").filter { $0.hasPrefix("-") || $0.hasPrefix("+") }
                .compactMap { $0.split(separator: " ").first.map(String.init) }
        )
        #expect(named == Set(MagickOperator.all.map(\.name)))
    }

    @Test func `the sizes of an option refer to the image after the options before it`() throws {
        #expect(
            try Self.list("-crop 120x80+60+40").map(\.rect) == [UnitRect(x: 0.25, y: 0.25, width: 0.5, height: 0.5)]
        )
        let rotated = try Self.list("-rotate 90 -crop 80x120+40+60")
        #expect(rotated[1].rect == UnitRect(x: 0.25, y: 0.25, width: 0.5, height: 0.5))
        #expect(try Self.list("-resize '500x500>'").isEmpty)
        for (text, part) in [
            ("-resize 500x500", "never"), ("-resize 50x50!", "proportions"), ("-shave 120x10", "leaves nothing"),
            ("-crop 10x10+300+0", "keeps nothing"), ("-border 90", "operation border"),
        ] {
            // It is allowed, but not for this image.
            let options = try MagickOptions(text)
            let error = #expect(throws: MagickOptionError.self) { try options.operations(for: (240, 160)) }
            #expect(error?.reason.contains(part) == true, "\(error?.description ?? "")")
        }
        let error = #expect(throws: MagickOptionError.self) { try Self.list("-flip -border 5", nil) }
        #expect(error?.word == "-border" && error?.reason.contains("not known") == true)
    }

    @Test func `texts of random words do not crash, and accepted texts contain an allowed option`() {
        var random = SeededRandom(seed: TestEnvironment.text("SAFELIGHT_SEED").flatMap(UInt64.init) ?? 41)
        let parts =
            MagickOperator.all.map(\.name) + MagickFragments.refused.map { String($0.text.prefix(40)) } + [
                "0x1", "50%", "10x10+1+1", "-1", "999999999999999", "red", "Median", "'", "\"", "\\", "%", "x", "+",
                "-5-5",
            ]
        for _ in 0..<TestEnvironment.rounds(2000) {
            let text = (0..<Int.random(in: 1...8, using: &random)).map { _ in random.pick(parts) }.joined(
                separator: " "
            )
            guard let options = try? MagickOptions(text) else { continue }
            for size in [(240, 160), (1, 1), (65_000, 2)] { _ = try? options.operations(for: size) }
            let words = (try? MagickWord.split(text)) ?? []
            #expect(words.contains { MagickOperator.byName[$0.text] != nil }, "\(text)")
            #expect(words.allSatisfy { !$0.text.contains("/") && !$0.text.contains("@") }, "\(text)")
        }
    }
}

import TestSupport
import Testing

@testable import PhotoModel

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct TextFoldingTests {
    @Test(arguments: [
        ("", "", "", ""),
        ("ABC xyz 1", "abc xyz 1", "ABC xyz 1", "abc xyz 1"),
        ("Été", "été", "Ete", "ete"),
        ("E\u{301}te\u{301}", "été", "Ete", "ete"),
        ("Straße", "strasse", "Straße", "strasse"),
        ("ΣΊΣΥΦΟΣ ς", "σίσυφοσ σ", "ΣΙΣΥΦΟΣ ς", "σισυφοσ σ"),
        ("İ", "i\u{307}", "I", "i"),
        ("ı", "ı", "ı", "ı"),
        ("ﬁ", "fi", "ﬁ", "fi"),
        ("Łódź øre", "łódź øre", "Łodz øre", "łodz øre"),
        ("Й", "й", "И", "и"),
        ("が", "が", "が", "が"),
        ("हिन्दी", "हिन्दी", "हिन्दी", "हिन्दी"),
        ("\u{212B}", "å", "A", "a"),
    ])
    func `each option ignores exactly its own differences`(text: String, c: String, d: String, cd: String) {
        #expect(Array(TextFolding.ignoringCase.apply(text).utf8) == Array(c.utf8))
        #expect(Array(TextFolding.ignoringDiacritics.apply(text).utf8) == Array(d.utf8))
        #expect(Array(folded(text).utf8) == Array(cd.utf8))
    }

    @Test func `text is converted to normal form C`() {
        #expect(Array(nfc("e\u{301}").utf8) == [0xC3, 0xA9])
        #expect(Array(nfc("\u{1100}\u{1161}").utf8) == Array("\u{AC00}".utf8))
        #expect(Array(nfc("plain").utf8) == Array("plain".utf8))
    }

    @Test func `folding is idempotent for every scalar`() {
        for value in (0 as UInt32)...0x2FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            for folding: TextFolding in [[], .ignoringCase, .ignoringDiacritics, .caseAndDiacritics] {
                let text = String(scalar)
                let once = folding.apply(text)
                // Bytes that folding did not change are not changed by folding them again.
                if once.utf8.elementsEqual(text.utf8) { continue }
                let twice = folding.apply(once)
                if !once.utf8.elementsEqual(twice.utf8) {
                    Issue.record("U+\(String(value, radix: 16)) folds to \(once) and then to \(twice)")
                }
            }
        }
    }

    @Test func `canonically equivalent texts fold to the same bytes`() {
        var random = SeededRandom(named: "folding")
        let scalars = Array("aAeEßéÉIİıſKÅσςΣ".unicodeScalars) + Array("\u{301}\u{308}\u{327}\u{345}が".unicodeScalars)
        for _ in 0..<TestEnvironment.rounds(2000) {
            var view = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 0...8, using: &random) { view.append(random.pick(scalars)) }
            let text = String(view)
            for folding: TextFolding in [[], .ignoringCase, .ignoringDiacritics, .caseAndDiacritics] {
                let once = folding.apply(text)
                #expect(Array(once.utf8) == Array(folding.apply(nfc(text)).utf8), "\(Array(view))")
                #expect(Array(once.utf8) == Array(folding.apply(once).utf8), "\(Array(view))")
            }
            // The capital of the combining iota is a letter, and the dotless i has the same capital as i.
            if !view.contains(where: { $0 == "\u{345}" || $0 == "ı" }) {
                #expect(Array(folded(text).utf8) == Array(folded(text.uppercased()).utf8), "\(Array(view))")
            }
        }
    }

    @Test func `texts with ASCII characters are folded as scalar by scalar`() {
        var random = SeededRandom(named: "folding of ASCII")
        let ascii = (UInt8(0)..<0x80).map { Unicode.Scalar($0) }
        let others =
            Array("éÉİıſKÅσΣﬁßЙが가".unicodeScalars)
            + Array("\u{301}\u{308}\u{327}\u{345}\u{338}\u{20D2}\u{1161}\u{11A8}\u{200D}\u{1F600}".unicodeScalars)
        for percent in [0.0, 10, 50, 90] {
            for _ in 0..<TestEnvironment.rounds(1000) {
                var view = String.UnicodeScalarView()
                for _ in 0..<Int.random(in: 0...20, using: &random) {
                    view.append(random.pick(random.chance(percent) ? others : ascii))
                }
                let text = String(view)
                for folding: TextFolding in [[], .ignoringCase, .ignoringDiacritics, .caseAndDiacritics] {
                    let (fast, slow) = (folding.apply(text), folding.applyByScalars(text))
                    #expect(Array(fast.utf8) == Array(slow.utf8), "\(folding.letters) \(Array(view))")
                }
            }
        }
    }

    @Test func `an ASCII text with one accent is folded much faster than a text of accents`() {
        /// Returns the shortest of several times, because other tests may use the processor in between.
        func time(_ text: String) -> Duration {
            let times = (0..<10).map { _ in ContinuousClock().measure { #expect(!folded(text).isEmpty) } }
            return times.min() ?? .zero
        }
        let plain = String(repeating: "Some words of a caption and ", count: 4000)
        // With a single accent, only the characters beside it need the tables of Unicode.
        #expect(time(plain + "é") * 5 < time(String(repeating: "é", count: plain.utf8.count / 2)))
    }

    @Test func `options are parsed as written between the brackets`() {
        #expect(TextFolding(letters: "") == [])
        #expect(TextFolding(letters: "dc") == .caseAndDiacritics)
        #expect(TextFolding(letters: "CD")?.letters == "cd")
        #expect(TextFolding(letters: "cc") == nil)
        #expect(TextFolding(letters: "n") == nil)
    }

    @Test(arguments: [
        (TextMatch.Kind.like, "a*c", "abc", true), (.like, "a*c", "ac", true), (.like, "a?c", "ac", false),
        (.like, "*", "", true), (.like, "?", "", false), (.like, "", "", true), (.like, "", "a", false),
        (.like, "\\*", "*", true), (.like, "\\*", "a", false), (.like, "**b**", "abc", true),
        (.like, "*a*b*a", "xaybzba", true), (.like, "*ab", "aab", true), (.like, "?", "é", true),
        (.like, "a\\", "a\\", true), (.beginsWith, "", "", true), (.contains, "", "x", true),
        (.contains, "bc", "abcd", true), (.contains, "abcd", "abc", false), (.endsWith, "cd", "abcd", true),
        (.contains, "aab", "aaab", true), (.contains, "ababc", "abababc", true), (.contains, "b", "aab", true),
        (.contains, "aabaaac", "aabaabaaac", true), (.contains, "aabaaac", "aabaabaaab", false),
        (.endsWith, "xabcd", "abcd", false), (.equals, "a", "a", true), (.equals, "a", "A", false),
    ])
    func `a text operator matches expected texts`(kind: TextMatch.Kind, pattern: String, text: String, isMatch: Bool) {
        #expect(TextMatch(kind, pattern).matches(text) == isMatch)
    }

    @Test func `a pattern with many stars does not take exponential time`() {
        let match = TextMatch(.like, String(repeating: "*a", count: 200) + "b")
        #expect(!match.matches(String(repeating: "a", count: 2000)))
    }

    /// Returns true if a text matches a pattern, by exhaustive search.
    private static func isLike(_ pattern: ArraySlice<Unicode.Scalar>, _ text: ArraySlice<Unicode.Scalar>) -> Bool {
        let rest = pattern.dropFirst()
        switch pattern.first {
        case nil: return text.isEmpty
        case "*"?: return (text.startIndex...text.endIndex).contains { isLike(rest, text[$0...]) }
        case "?"?: return !text.isEmpty && isLike(rest, text.dropFirst())
        case "\\"?:
            let quoted: Unicode.Scalar = rest.first ?? "\\"
            return text.first == quoted && isLike(rest.dropFirst(), text.dropFirst())
        case let scalar?: return text.first == scalar && isLike(rest, text.dropFirst())
        }
    }

    @Test func `patterns of LIKE agree with a naive match`() {
        var random = SeededRandom(named: "patterns of LIKE")
        func scalars(_ letters: String, _ maxCount: Int) -> [Unicode.Scalar] {
            let letters = Array(letters.unicodeScalars)
            let count = Int.random(in: 0...maxCount, using: &random)
            return (0..<count).map { _ in letters[Int.random(in: letters.indices, using: &random)] }
        }
        func text(_ scalars: [Unicode.Scalar]) -> String {
            var view = String.UnicodeScalarView()
            view.append(contentsOf: scalars)
            return String(view)
        }
        var found = 0
        for _ in 0..<TestEnvironment.rounds(20_000) {
            let (pattern, subject) = (scalars("ab\u{E9}*?\\", 7), scalars("ab\u{E9}*", 9))
            let isMatch = TextMatch(.like, text(pattern)).matches(text(subject))
            found += isMatch ? 1 : 0
            #expect(isMatch == Self.isLike(pattern[...], subject[...]), "\(text(pattern)) and \(text(subject))")
        }
        #expect(found > 100)
    }

    @Test func `a piece of a pattern without question marks is found in a time proportional to the text`() {
        let text = String(repeating: "a", count: 1 << 18)
        func time(_ piece: String) -> Duration {
            let match = TextMatch(.like, "*\(piece)*")
            return ContinuousClock().measure { #expect(!match.matches(text)) }
        }
        let short = time("b")
        // A comparison at every position would take 254 times as many steps.
        #expect(time(String(repeating: "a", count: 253) + "b") < short * 20)
    }
}

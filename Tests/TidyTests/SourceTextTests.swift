import TestSupport
import Testing

/// Checks of the parser that the Tidy tests use.
@Suite(.timeLimit(.minutes(5)))
struct SourceTextTests {
    @Test func `comments, strings and code are separated`() {
        let source = SourceText(
            #"""
            let a = "x // no comment \(f("in", (1))) y" // a comment
            /* one /* nested */ still */ let b = #"raw " \n "# + "\""
            """#
        )
        #expect(source.comments.contains("a comment"))
        #expect(!source.comments.contains("no comment"))
        #expect(source.comments.contains("still"))
        #expect(source.code.contains("let b = "))
        #expect(!source.code.contains("raw"))
        #expect(!source.code.contains("nested"))
        #expect(source.strings.contains("raw"))
        #expect(source.strings.contains("in"))
    }

    @Test func `line numbers do not change`() {
        let source = SourceText("let a = \"\"\"\n  one\n  two\n  \"\"\"\n// note\nsleep(1)\n")
        #expect(SourceText.lines(of: source.code, holding: /sleep/) == [6])
        #expect(SourceText.lines(of: source.comments, holding: /note/) == [5])
        #expect(SourceText.lines(of: source.strings, holding: /two/) == [3])
    }

    @Test func `all forms of import are recognized`() {
        let source = SourceText(
            """
            import Alpha
            public import Beta
            @testable import Gamma
            @preconcurrency public import struct Delta.Thing
            // import Epsilon
            """
        )
        #expect(source.imports == ["Alpha", "Beta", "Gamma", "Delta"])
    }
}

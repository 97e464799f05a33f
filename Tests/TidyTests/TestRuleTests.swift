import Foundation
import TestSupport
import Testing

/// Tests of rules for the tests themselves.
@Suite(.timeLimit(.minutes(5)))
struct TestRuleTests {
    let tree: SourceTree

    init() throws { tree = try SourceTree.read() }

    /// The files of all tests except the Tidy tests, which contain patterns of the rules.
    private var files: [SourceTree.File] {
        tree.files.filter { $0.module.hasSuffix("Tests") && $0.module != "TidyTests" }
    }

    // MARK: Time limits

    /// Returns the types that directly contain tests and have no time limit, as `Module.Type`.
    private static func unlimited(_ files: [SourceTree.File]) -> Set<String> {
        let suites = files.map { ($0.module, SourceSuites($0.source.code)) }
        func names(_ types: KeyPath<SourceSuites, Set<String>>) -> Set<String> {
            Set(suites.flatMap { module, suites in suites[keyPath: types].map { "\(module).\($0)" } })
        }
        return names(\.withTests).subtracting(names(\.withTimeLimit))
    }

    @Test func `every suite has a time limit`() {
        #expect(files.count > 300)
        for name in Self.unlimited(files).sorted() { Issue.record("\(name): give the suite a .timeLimit") }
        for file in tree.files where file.module == "TidyTests" && file.source.code.contains(/@Test\b/) {
            #expect(file.source.code.contains(".timeLimit("), "\(file.path): give the suite a .timeLimit")
        }
    }

    @Test func `suites, their limits and their names are parsed`() {
        let suites = SourceSuites(
            SourceText(
                """
                @Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(1))))
                struct Limited {
                    let pattern = /[{]\\/{/
                    private struct Inner { let text = "}" }
                    @Test(arguments: [1]) func `braces } and struct names`() { let inside = { 1 } }
                }
                struct Unlimited { @Test(.timeLimit(.minutes(1))) func one() {} }
                @Suite(.serialized) struct Parent {}
                extension Parent {
                    @Suite(.timeLimit(.minutes(1))) final class Child { @Test func two() {} }
                }
                enum Helper {}
                """
            ).code
        )
        #expect(suites.withTests == ["Limited", "Unlimited", "Child"])
        #expect(suites.withTimeLimit == ["Limited", "Child"])
        #expect(suites.paths == ["Limited", "Unlimited", "Parent/Child"])
        #expect(SourceSuites("@Test func alone() {}").withTests == [""])
    }

    // MARK: Long forms

    /// Returns the filters of the commands of `make soak` that run long forms.
    private func soakFilters() throws -> [String] {
        let makefile = try String(contentsOf: tree.root.appending(path: "Makefile"), encoding: .utf8)
        let rules = makefile.replacing("\\\n", with: " ").components(separatedBy: "\n\n")
        let soak = try #require(rules.first { $0.hasPrefix("soak:") })
        return soak.split(separator: "\n").filter { $0.contains("SAFELIGHT_SOAK=") }
            .compactMap { $0.firstMatch(of: /--filter '([^']+)'/).map { String($0.1) } }
    }

    @Test func `make soak runs the long form of each suite that has one`() throws {
        let filters: [Regex<AnyRegexOutput>] = try soakFilters().map { try Regex($0) }
        #expect(filters.count > 2)
        var found = 0
        for file in files {
            let text = file.source.withoutComments
            guard text.contains("TestEnvironment.rounds(") || text.contains("SAFELIGHT_SOAK") else { continue }
            found += 1
            let paths = SourceSuites(file.source.code).paths
            // A file without tests is used by the other files of its module.
            let names = paths.isEmpty ? [""] : paths
            for name in names.map({ "\(file.module).\($0)/" }) where !filters.contains(where: { name.contains($0) }) {
                Issue.record("\(file.path): no command of make soak with SAFELIGHT_SOAK runs \(name)")
            }
        }
        #expect(found > 50)
    }

    // MARK: Waiting

    /// Returns the lines that yield in a loop whose condition does not check for cancellation: after the time limit,
    /// the cancelled task would continue, and the run would never end.
    private static func endlessLoops(_ code: String) -> [Int] {
        guard code.contains("Task.yield()") else { return [] }
        let lines = code.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.indices.filter { index in
            guard lines[index].contains("Task.yield()") else { return false }
            let isAlone = lines[index].trimmingPrefix(while: \.isWhitespace) == "await Task.yield()"
            let start = isAlone ? max(0, index - 2) : index
            let header = lines[start...index].lastIndex { $0.contains("while ") }
            guard let loop = header else { return false }
            return !lines[loop...index].contains { $0.contains("isCancelled") }
        }.map { $0 + 1 }
    }

    @Test func `a loop that only yields ends with its task`() {
        for file in files {
            for line in Self.endlessLoops(file.source.code) {
                Issue.record("\(file.path):\(line): it never ends; add !Task.isCancelled to the condition")
            }
        }
        #expect(Self.endlessLoops("while count < 3 { await Task.yield() }") == [1])
        #expect(Self.endlessLoops("while !all.allSatisfy({ $0 }) {\n    await Task.yield()\n}") == [2])
        #expect(Self.endlessLoops("while count < 3, !Task.isCancelled { await Task.yield() }") == [])
        #expect(Self.endlessLoops("for _ in 0..<9 {\n    await Task.yield()\n}") == [])
    }

    // MARK: Random numbers

    /// The generator itself, and keys for CURVE, whose bytes do not affect tests.
    private static let filesThatMayDraw: Set<String> = ["SeededRandom.swift", "RawCurve.swift"]

    @Test func `random numbers of tests come from a seed that can be repeated`() {
        let others = tree.files.filter {
            ($0.module.hasSuffix("Tests") || $0.module == "TestSupport") && $0.module != "TidyTests"
                && !Self.filesThatMayDraw.contains($0.name)
        }
        for file in others where file.source.withoutComments.contains(".random(in:") {
            for line in SourceText.lines(of: file.source.withoutComments, holding: /\.random\(in: (?:(?!using:).)*$/) {
                Issue.record("\(file.path):\(line): draw from SeededRandom(named:), and pass it with using:")
            }
        }
    }
}

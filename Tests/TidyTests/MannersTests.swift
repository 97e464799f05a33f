import Foundation
import Testing

/// What may stand where.
enum Manners {
    /// SQL is written in these files alone.
    static func mayHoldSQL(_ file: House.File) -> Bool {
        file.room == "Storage" || file.name.contains("Store") || file.name.contains("Schema")
            || file.path.contains("/Store/")
    }

    /// Where waiting has its names; and the end of libzmq, which has no task to wait in.
    static func mayWait(_ file: House.File) -> Bool {
        ["Waiting.swift", "MessagingContext.swift"].contains(file.name)
    }

    static let longestFile = 450
}

/// Habits that a compiler does not check.
@Suite(.timeLimit(.minutes(5)))
struct MannersTests {
    let house: House

    init() throws { house = try House.read() }

    /// Fails once for each line of a part of the files that holds the pattern.
    private func expectNone(
        _ pattern: some RegexComponent,
        in part: (SourceText) -> String,
        of files: [House.File],
        _ what: String
    ) {
        for file in files {
            for line in SourceText.lines(of: part(file.source), holding: pattern) {
                Issue.record("\(file.path):\(line): \(what)")
            }
        }
    }

    @Test func `no notes are left over`() throws {
        let files = house.files.filter { $0.room != "TidyTests" }
        expectNone(/\b(TODO|FIXME|XXX|HACK)\b/, in: \.comments, of: files, "a left-over note")
    }

    @Test func `nothing traps on purpose where an error could be thrown`() throws {
        expectNone(/\btry!/, in: \.code, of: house.files, "try! traps")
        expectNone(/\bas!/, in: \.code, of: house.files, "as! traps")
    }

    @Test func `nothing sleeps in place of an event`() throws {
        expectNone(
            /(^|[^.\w])(u|nano)?sleep\(|Glibc\.sleep|Thread\.sleep/,
            in: \.code,
            of: house.productFiles,
            "it blocks"
        )
        expectNone(
            /\.sleep\(|\basyncAfter\(/,
            in: \.code,
            of: house.productFiles.filter { !Manners.mayWait($0) },
            "it sleeps: wait for an event, or say by a function of Waiting for what"
        )
    }

    @Test func `libraries do not print`() throws {
        let shared = house.files.filter { $0.path.hasPrefix("Shared/") }
        expectNone(/(^|[^.\w])(debugPrint|print|dump)\(/, in: \.code, of: shared, "a library prints")
    }

    @Test func `SQL stands in Store and Schema files alone`() throws {
        let others = house.productFiles.filter { !Manners.mayHoldSQL($0) }
        let words =
            /\b(SELECT\s+\S+.*\bFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX)|PRAGMA\s)/
        expectNone(words, in: \.strings, of: others, "SQL outside a Store or Schema file")
    }

    @Test func `a file is one idea and fits a sitting`() throws {
        for file in house.files {
            #expect(file.source.lineCount <= Manners.longestFile, "\(file.path) is too long")
        }
    }

    @Test func `every test has an end`() throws {
        let suites = house.files.filter { $0.room.hasSuffix("Tests") && $0.source.code.contains(/@Test\b/) }
        for file in suites where !file.source.code.contains(/\bextension\b/) {
            #expect(file.source.code.contains(".timeLimit("), "\(file.path): give its suites a .timeLimit")
        }
    }

    @Test func `every verb of the Makefile says what it does`() throws {
        let text = try String(contentsOf: house.root.appending(path: "Makefile"), encoding: .utf8)
        let phony = text.matches(of: /(?m)^\.PHONY:(.*)$/).flatMap { $0.1.split(separator: " ").map(String.init) }
        let documented = Set(text.matches(of: /(?m)^([a-z-]+):.*##/).map { String($0.1) })
        #expect(!documented.isEmpty)
        for verb in phony where !verb.hasPrefix("_") { #expect(documented.contains(verb), "make \(verb)") }
    }
}

import Contracts
import Foundation
import TestSupport
import Testing

/// The programs of `Shared/docs/recipes.md`, run in their order against the real services.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct RecipeTests {
    private struct Recipe {
        let title: String
        let program: String

        /// The lines that are neither empty nor a comment.
        var lineCount: Int {
            program.split(separator: "\n").count { !$0.trimmingCharacters(in: .whitespaces).hasPrefix("#") }
        }
    }

    /// The text that each program prints, by the beginning of its title; the others print nothing or are checked by the
    /// files that they write.
    private static let outputs = [
        "Import a folder": "imported 12", "Print the newest": "2024-05-12T12:00:00Z photo12.jpg",
        "List the identifiers": "13 without keywords", "Mark favourites": "'originalFilename': 'photo4.jpg'",
        "Count photos": "2024 {'unknown': 0, 'image': 13,", "Find duplicates": "duplicates 0",
        "Write the places": "photo5.jpg,47.5,11.25",
        "Make an album": "6 in c", "Add a keyword": "tagged 6", "Set captions": "captions 2",
        "Correct the clock": "corrected 2", "Move rejected": "restored 1", "Brighten": "edited",
        "Undo": "undone photo4.jpg",
        "Save a contact": "x",
    ]

    private static func recipes() throws -> [Recipe] {
        var recipes: [Recipe] = []
        var title = ""
        var open: [Substring]?
        let page = try String(contentsOfFile: TestPaths.package + "/Shared/docs/recipes.md", encoding: .utf8)
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("### ") { title = String(line.dropFirst(4)) }
            if line == "```", let lines = open {
                recipes.append(Recipe(title: title, program: lines.joined(separator: "\n") + "\n"))
                open = nil
            } else if line == "```python" {
                open = []
            } else {
                open?.append(line)
            }
        }
        return recipes
    }

    @Test func `each of twenty tasks is done by at most ten lines of plain pyzmq`() async throws {
        let python = try Needed.python()
        let (module, recipes) = try (#require(Self.recipes().first), Array(Self.recipes().dropFirst()))
        #expect(recipes.count == 20)
        let services = try SafelightFixture("recipes")
        let folder = services.folder
        for number in 1...12 {
            try folder.write(
                TestImages.jpeg(
                    width: number % 2 == 0 ? 640 : 320,
                    height: 240,
                    date: "2024:05:\(number < 10 ? "0" : "")\(number) 12:00:00",
                    latitude: number == 5 ? 47.5 : nil,
                    longitude: number == 5 ? 11.25 : nil,
                    focalLengthIn35mm: number % 2 == 0 ? 24 : 85,
                    seed: UInt64(number)
                ),
                to: "home/Pictures/photo\(number).jpg"
            )
        }
        // Three appends, the last one shorter.
        try folder.write(
            TestImages.jpeg(width: 200, height: 100, date: "2024:04:01 12:00:00", seed: 20)
                + [UInt8](repeating: 7, count: BeginUpload.chunkBytes * 5 / 2),
            to: "work/upload.jpg"
        )
        try folder.write(
            Array("photo1.jpg,The summit\nphoto2.jpg,\"Down, at last\"\nother.jpg,-\n".utf8),
            to: "work/captions.csv"
        )
        try folder.write(Array(module.program.utf8), to: "work/photos.py")
        try services.start()
        var environment = services.environment
        environment["HOME"] = folder.file("home")
        for (index, recipe) in recipes.enumerated() {
            #expect(recipe.lineCount <= 10, "\(recipe.title): \(recipe.lineCount) lines")
            #expect(recipe.program.split(separator: "\n").allSatisfy { $0.count <= 130 }, "\(recipe.title)")
            if recipe.title.hasPrefix("Move rejected") {
                try rate("photo7.jpg", 1, services)
            }
            let path = try folder.write(Array(recipe.program.utf8), to: "work/recipe\(index).py")
            let command = "cd \(folder.file("work")) && exec \(python) -B -u \(path)"
            if recipe.title.hasPrefix("Watch") {
                try watch(command, environment, services)
                continue
            }
            let run = try RunningProgram.run("/bin/sh", ["-c", command], environment: environment, seconds: 60)
            #expect(run.status == 0, "\(recipe.title): \(run.errors.suffix(2000))")
            for (title, output) in Self.outputs where recipe.title.hasPrefix(title) {
                #expect(run.output.contains(output), "\(recipe.title): \(run.output.suffix(2000))")
            }
        }
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.file("work"))
        #expect(files.count { $0.hasSuffix(".webp") } == 6)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("work/mirror")).count == 6)
        let originals = try files.filter { $0.hasSuffix(".original") }.map {
            try Data(contentsOf: URL(fileURLWithPath: folder.file("work/" + $0)))
        }
        let imported = try (1...6).map { number in
            try Data(contentsOf: URL(fileURLWithPath: folder.file("home/Pictures/photo\(2 * number).jpg")))
        }
        #expect(Set(originals) == Set(imported))
        #expect(services.stop() == [])
    }

    private func rate(_ name: String, _ stars: Int, _ services: SafelightFixture) throws {
        let program = """
            from photos import assets, change
            found = assets({"predicate": "originalFilename == '\(name)'"}, ["id"])
            change([{"type": "asset.update", "id": asset["id"], "set": {"rating": \(stars)}} for asset in found])
            """
        let path = try services.folder.write(Array(program.utf8), to: "work/rate.py")
        let run = try RunningProgram.run(try Needed.python(), ["-B", path], environment: services.environment)
        #expect(run.status == 0, "\(run.errors)")
    }

    /// Imports photos until the program, which never ends by itself, has reported one.
    private func watch(_ command: String, _ environment: [String: String], _ services: SafelightFixture) throws {
        let program = try RunningProgram("/bin/sh", ["-c", command], environment: environment)
        defer { program.killHard() }
        for number in 30..<60 where !program.outputText.contains("imported") {
            let path = try services.folder.write(TestImages.jpeg(seed: UInt64(number)), to: "later/late\(number).jpg")
            #expect(try services.safelight(["import", path]).status == 0)
            _ = program.waitForOutput("imported late", seconds: 1)
        }
        #expect(program.waitForOutput("imported late", seconds: 5), "\(program.outputText)\n\(program.errorText)")
    }
}

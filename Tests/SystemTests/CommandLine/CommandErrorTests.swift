import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

/// Commands with errors, or that would do something else than the user asked for.
@Suite(.timeLimit(.minutes(5)))
struct CommandErrorTests {
    private static let changes = [
        ["favorite"], ["hide"], ["set", "--rating", "1"], ["edit", "--exposure", "1"], ["album", "add", "Sea"],
        ["album", "remove", "Sea"], ["storage", "jobs", "upload"], ["storage", "jobs", "download"],
        ["grants", "limit", "ann"], ["grants", "widen", "ann"], ["grants", "narrow", "ann"],
    ]

    @Test(arguments: changes)
    func `an invalid fetch of a command that changes assets is a usage error with its name`(words: [String]) throws {
        for (options, name) in [
            (["--where", "rating ="], "invalid_predicate"), (["--sort", "creationDate:up"], "unsupported_sort_key"),
        ] {
            let run = try RunningProgram.run("safelight", words + options)
            #expect(run.status == 2 && run.errors.contains("(\(name))"), "\(run.errors)")
            #expect(!run.errors.contains("CommandError"), "\(run.errors)")
        }
    }

    @Test(arguments: [
        (["export", "-o", "x", "--current", "--size", "9"], "safelight export"),
        (["watch", "--count", "-1"], "--count must be at least 1"),
        (["history", "x", "--undo-to", "-1"], "--undo-to must be a number from 0"),
        (["fetch", "--limit", "-1"], "limit and offset must be 0 or more"),
        (["edit", "x", "--lut-strength", "0.5", "--exposure", "1"], "--lut-strength needs --lut"),
        (["import", "x", "--album", " "], "the title must not be empty"),
        (["edit", "x", "--exposure", "1", "--preview", "p.jpg", "--if-revision", "r1"], "--if-revision"),
    ])
    func `the message of a usage error is about the command and the option`(words: [String], text: String) throws {
        let run = try RunningProgram.run("safelight", words)
        #expect(run.status == 2 && run.errors.contains(text), "\(run.errors)")
    }

    @Test func `sample photos do not replace a file of the user`() throws {
        let folder = try TemporaryFolder("samples")
        let first = try RunningProgram.run("safelight", ["sample-photos", folder.file("photos")])
        let file = try #require(first.output.split(separator: "\n").first.map(String.init))
        #expect(try RunningProgram.run("safelight", ["sample-photos", folder.file("photos")]).status == 0)
        try Data("mine".utf8).write(to: URL(filePath: file))
        let second = try RunningProgram.run("safelight", ["sample-photos", folder.file("photos")])
        #expect(second.status == 1 && second.errors.contains("(not_written)"), "\(second.errors)")
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "mine")
    }

    @Test func `a preview equals the result of the edit`() throws {
        let services = try SafelightFixture("previews")
        for seed in 1...2 {
            try services.folder.write(TestImages.jpeg(seed: UInt64(seed)), to: "photos/\(seed).jpg")
        }
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        func preview(_ options: String..., name: String) throws -> [UInt8] {
            let file = services.folder.file(name)
            let run = try services.safelight(["edit", "1.jpg", "--preview", file] + options)
            try #require(run.status == 0, "\(run.errors)")
            return try [UInt8](Data(contentsOf: URL(filePath: file)))
        }
        #expect(try services.safelight(["edit", "1.jpg", "--black-and-white"]).status == 0)
        let replaced = try preview("--contrast", "0.2", name: "replaced.jpg")
        let appended = try preview("--append", "--contrast", "0.2", name: "appended.jpg")
        let both = AdjustmentList(operations: [.blackAndWhite(1), .contrast(0.2)])
        let list = try services.folder.write(both.json.bytes, to: "both.json")
        let whole = try preview("--list", list, name: "whole.jpg")
        #expect(appended == whole && appended != replaced)
        #expect(try preview("--enhance", "--contrast", "0.2", name: "enhanced.jpg") != replaced)
        #expect(try services.safelight(["fetch", "--limit", "2"]).status == 0)
        let several = try services.safelight(["edit", "@1-2", "--exposure", "1", "--preview", "p.jpg"])
        #expect(several.status == 2 && several.errors.contains("exactly one asset"), "\(several.errors)")
        #expect(services.stop() == [])
    }

    @Test func `files that belong to a known photo are imported, or named if they cannot be`() throws {
        let services = try SafelightFixture("beside")
        let photo = TestImages.appleImage(note: TestImages.appleNote(content: "ONE"))
        func video(_ title: String) -> [UInt8] {
            TestVideos.video(values: [("content.identifier", "ONE"), ("title", title)])
        }
        let sidecar = Array(TestImages.xmpPacket("xmp:Rating=\"5\"").utf8)
        for (name, bytes) in [
            ("one/A.jpg", photo), ("one/A.MOV", video("first")), ("two/A.jpg", photo), ("two/A.MOV", video("second")),
            ("two/A.jpg.xmp", sidecar),
        ] { try services.folder.write(bytes, to: name) }
        try services.start([.catalog])
        func run(_ words: String...) throws -> String {
            let run = try services.safelight(["import"] + words)
            #expect(run.status == 0, "\(run.errors)")
            return run.output
        }
        // As a shell expands one/*.
        let first = try run(services.folder.file("one/A.MOV"), services.folder.file("one/A.jpg"))
        #expect(first.hasPrefix("1 imported, 0 already there, 0 broken"), "\(first)")
        for expected in ["1 imported, 1 already there", "0 imported, 2 already there"] {
            let second = try run(services.folder.file("two"))
            #expect(second.hasPrefix(expected) && second.contains("1 sidecar"), "\(second)")
        }
        let library = try services.safelight(["import", services.folder.file("library")])
        #expect(library.status == 1 && library.errors.contains("(not_imported)"), "\(library)")
        let alone = try services.safelight(["import", services.folder.file("two/A.jpg.xmp")])
        #expect(alone.status == 1 && alone.errors.contains("(not_imported)"), "\(alone)")
        #expect(services.stop() == [])
    }
}

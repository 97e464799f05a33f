import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import CommandLine

/// Commands that change several presets.
@Suite(.timeLimit(.minutes(1)))
struct PresetTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder("presets")
        for name in ["a", "b"] {
            let list = "{\"version\": 1, \"operations\": [{\"operation\": \"exposure\", \"value\": 0.5}]}"
            try folder.write(list.utf8, to: "new/\(name).json")
        }
    }

    private var files: [String] { ["a", "b"].map { folder.file("new/\($0).json") } }
    private var options: [String] { ["--presets", folder.file("presets")] }

    private func names() throws -> [String] { try PresetFolder(flag: folder.file("presets")).names() }

    @Test func `no preset is imported if a preset with the name of one of them exists`() throws {
        try PresetCommand.Import.parse([files[1]] + options).run()
        let failure = #expect(throws: CommandFailure.self) { try PresetCommand.Import.parse(files + options).run() }
        #expect(failure?.name == "conflict")
        #expect(try names() == ["b"])
        try PresetCommand.Import.parse(files + options + ["--replace"]).run()
        #expect(try names() == ["a", "b"])
    }

    @Test func `a preset folder that is a file is reported as not read`() throws {
        let failure = #expect(throws: CommandFailure.self) { try PresetFolder(flag: files[0]).names() }
        #expect(failure?.name == "not_read")
    }

    @Test func `no preset is removed if one of the names does not exist`() throws {
        try PresetCommand.Import.parse(files + options).run()
        let failure = #expect(throws: CommandFailure.self) {
            try PresetCommand.Remove.parse(["a", "c"] + options).run()
        }
        #expect(failure?.name == "identifier_not_found" && failure?.status == .refused)
        #expect(try names() == ["a", "b"])
        try PresetCommand.Remove.parse(["a", "b"] + options).run()
        #expect(try names().isEmpty)
    }
}

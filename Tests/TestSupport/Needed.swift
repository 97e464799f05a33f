public import Foundation
public import Testing

/// What a test needs of the machine, and `make setup` installs: programs of others, Python modules, the photographs.
///
/// Where something is missing the test is cancelled with the reason, which the report shows; with `CI=true` it fails.
public enum Needed {
    /// Something is missing where it must be there.
    public struct Missing: Error, CustomStringConvertible {
        public let description: String
    }

    /// Whether a missing tool or sample is a failure.
    public static let isRequired = ["true", "1"].contains(TestEnvironment.text("CI")?.lowercased() ?? "")

    /// The path of a program.
    public static func program(_ name: String) throws -> String {
        try found(TestPlace.program(name) ?? Tool.path(name), name)
    }

    /// The path of the first of some programs that is there.
    public static func program(oneOf names: String...) throws -> String {
        try found(names.lazy.compactMap { TestPlace.program($0) }.first, names.joined(separator: " or "))
    }

    /// The path of a Python that has a module.
    public static func python(_ module: String = "zmq") throws -> String {
        let candidates = [TestPlace.program("python3"), "/usr/bin/python3"].compactMap { $0 }
        let path = candidates.first { (try? RunningProgram.run($0, ["-c", "import \(module)"]).status) == 0 }
        return try found(path, "python3 with \(module)")
    }

    /// The folder of photographs.
    @discardableResult
    public static func photographs() throws -> URL {
        try found(SharedPhotos.folder, "the folder of photographs (../shared/photos, or SAFELIGHT_PHOTOS)")
    }

    /// The photographs with one of these endings, at least one.
    public static func photographs(_ endings: [String], below path: String = "") throws -> [URL] {
        try photographs()
        let files = SharedPhotos.files(endings, below: path)
        return try found(files.isEmpty ? nil : files, "photographs of the kinds \(endings.joined(separator: ", "))")
    }

    /// Says that a part of a test is left out because its samples are missing; with `CI=true` that is an error.
    public static func missingPart(_ text: String) throws {
        guard isRequired else { return TestPlace.say("missing, and left out: \(text)") }
        throw Missing(description: "missing, and with CI=true they must be there: \(text)")
    }

    /// The value, where there is one.
    public static func found<Value>(_ value: Value?, _ name: String) throws -> Value {
        if let value { return value }
        guard isRequired else { try Test.cancel("\(name) is missing; make setup installs the tools") }
        throw Missing(description: "\(name) is missing, and with CI=true it must be there: run make setup")
    }
}

extension Trait where Self == ConditionTrait {
    /// What all tests of a suite need: they are skipped, visibly, where it is missing, and fail with `CI=true`.
    public static func needs(_ name: String, _ isThere: @escaping @Sendable () -> Bool) -> Self {
        .enabled("\(name) is missing; make setup installs the tools") {
            if isThere() { return true }
            guard Needed.isRequired else { return false }
            throw Needed.Missing(description: "\(name) is missing, and with CI=true it must be there: run make setup")
        }
    }
}

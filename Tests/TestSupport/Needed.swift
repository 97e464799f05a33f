public import Foundation
import Synchronization
public import Testing

/// The requirements of tests that `make setup` installs: external programs, Python modules, sample photos.
///
/// If one is missing, the test is cancelled with the reason, which the report shows. With `CI=true` it fails instead.
public enum Needed {
    /// A requirement that is missing although it must be present.
    public struct Missing: Error, CustomStringConvertible {
        /// The name of the requirement and how to install it.
        public let description: String
    }

    /// True if a missing requirement is a failure: `CI` is `true` or `1`.
    public static let isRequired = ["true", "1"].contains(TestEnvironment.text("CI")?.lowercased() ?? "")

    /// Returns the path of a program.
    public static func program(_ name: String) throws -> String {
        try found(TestPaths.program(name) ?? ExternalTool.path(name), name)
    }

    /// Returns the path of the first program that is installed.
    public static func program(oneOf names: String...) throws -> String {
        try found(names.lazy.compactMap { TestPaths.program($0) }.first, names.joined(separator: " or "))
    }

    /// The interpreters that have some modules, by the names of the modules. They are cached because starting one takes
    /// longer than many tests.
    private static let interpreters = Mutex<[String: String]>([:])

    /// Returns the path of a Python interpreter that has a module.
    public static func python(_ module: String = "zmq") throws -> String {
        if let path = interpreters.withLock({ $0[module] }) { return path }
        let candidates = [TestPaths.program("python3"), "/usr/bin/python3"].compactMap { $0 }
        let path = candidates.first { (try? RunningProgram.run($0, ["-c", "import \(module)"]).status) == 0 }
        interpreters.withLock { $0[module] = path }
        return try found(path, "python3 with \(module)")
    }

    /// Returns the folder of sample photos.
    @discardableResult
    public static func photographs() throws -> URL {
        try found(SharedPhotos.folder, "the folder of sample photos (../shared/photos or SAFELIGHT_PHOTOS)")
    }

    /// Returns the sample photos with one of the extensions, at least one.
    public static func photographs(_ fileExtensions: [String], below path: String = "") throws -> [URL] {
        try photographs()
        let files = SharedPhotos.files(fileExtensions, below: path)
        let types = fileExtensions.joined(separator: ", ")
        return try found(files.isEmpty ? nil : files, "sample photos of the types \(types)")
    }

    /// Reports that a part of a test is skipped because its samples are missing. With `CI=true` it throws.
    public static func reportMissingPart(_ text: String) throws {
        guard isRequired else { return TestPaths.report("skipped because samples are missing: \(text)") }
        throw Missing(description: "samples are missing although CI=true requires them: \(text)")
    }

    /// Returns the value if it is not nil; otherwise cancels the test, or throws with `CI=true`.
    public static func found<Value>(_ value: Value?, _ name: String) throws -> Value {
        if let value { return value }
        guard isRequired else { try Test.cancel("\(name) is missing; make setup installs the tools") }
        throw Missing(description: "\(name) is missing although CI=true requires it: run make setup")
    }
}

extension Trait where Self == ConditionTrait {
    /// Requires something for all tests of a suite. If it is missing, they are skipped visibly, and fail with
    /// `CI=true`.
    public static func needs(_ name: String, _ isInstalled: @escaping @Sendable () -> Bool) -> Self {
        .enabled("\(name) is missing; make setup installs the tools") {
            if isInstalled() { return true }
            guard Needed.isRequired else { return false }
            throw Needed.Missing(description: "\(name) is missing although CI=true requires it: run make setup")
        }
    }
}

public import Foundation

/// A folder of its own for one test, removed with everything in it at the end.
///
/// The path is short: the address of an `ipc://` endpoint holds at most 107 bytes.
public final class TemporaryFolder: Sendable {
    public let path: String

    public init(_ name: String = "t") throws {
        var template = Array("/tmp/sl-\(name)-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw POSIXError(.EIO) }
        path = String(cString: made)
    }

    public var url: URL { URL(fileURLWithPath: path, isDirectory: true) }

    public func file(_ name: String) -> String { path + "/" + name }

    @discardableResult
    public func write(_ bytes: some Sequence<UInt8>, to name: String) throws -> String {
        let path = file(name)
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent,
            withIntermediateDirectories: true
        )
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    deinit {
        guard ProcessInfo.processInfo.environment["KEEP_TEST_FOLDERS"] == nil else { return }
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// Where things are on the machine that runs the tests.
public enum TestPlace {
    /// The folder of the built executables: `SAFELIGHT_EXECUTABLES`, else they stand beside the test bundle.
    public static let executables =
        TestEnvironment.text("SAFELIGHT_EXECUTABLES").map { $0.hasPrefix("/") ? $0 : package + "/" + $0 }
        ?? (CommandLine.arguments[0] as NSString).deletingLastPathComponent

    /// Whether the executables are those of a release build.
    public static let isRelease = (executables as NSString).lastPathComponent == "release"

    /// A bound on time that holds for a release build, four times as long for a debug build, whose code is that much
    /// slower or more.
    public static func bound(_ release: Duration) -> Duration { isRelease ? release : release * 4 }

    /// The package's own folder.
    public static let package: String = {
        var folder = (#filePath as NSString).deletingLastPathComponent
        for _ in 0..<2 { folder = (folder as NSString).deletingLastPathComponent }
        return folder
    }()

    /// The real photographs for tests, where they are beside the checkout; nil elsewhere, and the test says so.
    public static let photos: String? = {
        let path = (package as NSString).deletingLastPathComponent + "/shared/photos"
        return FileManager.default.fileExists(atPath: path) ? path : nil
    }()

    /// A program that tests compare with; nil where it is not installed, and the test says so.
    public static func program(_ name: String) -> String? {
        let paths = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return paths.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Lets this process, and what it starts, open more files.
    ///
    /// - Returns: how many
    public static func raiseDescriptors(to wanted: Int) -> Int {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        if limit.rlim_cur < rlim_t(wanted) {
            limit.rlim_cur = min(rlim_t(wanted), limit.rlim_max)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// Says on the test's output why a comparison was left out.
    public static func say(_ text: String) { FileHandle.standardError.write(Data("note: \(text)\n".utf8)) }
}

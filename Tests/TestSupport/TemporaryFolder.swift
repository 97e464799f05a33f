public import Foundation
import Synchronization

/// A temporary folder for one test, removed with its content on deinitialization.
///
/// Its path is short, because the path of an `ipc://` address has at most 106 bytes.
public final class TemporaryFolder: Sendable {
    /// The absolute path.
    public let path: String

    /// Creates the folder; the name becomes part of its path.
    public init(_ name: String = "t") throws {
        var template = Array("/tmp/sl-\(name)-XXXXXX".utf8CString)
        guard let created = mkdtemp(&template) else { throw POSIXError(.EIO) }
        path = String(cString: created)
    }

    /// The folder as a URL.
    public var url: URL { URL(fileURLWithPath: path, isDirectory: true) }

    /// Returns the path of a file in the folder.
    public func file(_ name: String) -> String { path + "/" + name }

    /// Writes a file into the folder and returns its path.
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

    /// The folders that are removed when the process exits.
    private static let shared = Mutex<[String]>([])

    /// Removes the folder when the process exits. For a folder that tests share, which is not released before.
    public func removeAtExit() {
        Self.shared.withLock { paths in
            if paths.isEmpty {
                atexit { for path in TemporaryFolder.shared.withLock({ $0 }) { TemporaryFolder.remove(path) } }
            }
            paths.append(path)
        }
    }

    private static func remove(_ path: String) {
        guard ProcessInfo.processInfo.environment["KEEP_TEST_FOLDERS"] == nil else { return }
        try? FileManager.default.removeItem(atPath: path)
    }

    deinit { Self.remove(path) }
}

/// Paths on the machine that runs the tests.
public enum TestPaths {
    /// The folder of the built executables: `SAFELIGHT_EXECUTABLES`, else the folder of the test bundle.
    public static let executables =
        TestEnvironment.text("SAFELIGHT_EXECUTABLES").map { $0.hasPrefix("/") ? $0 : package + "/" + $0 }
        ?? (CommandLine.arguments[0] as NSString).deletingLastPathComponent

    /// True if the executables are a release build.
    public static let isRelease = (executables as NSString).lastPathComponent == "release"

    /// Returns the time limit for a build: the given one for a release build, a multiple of it for a debug build.
    public static func bound(_ release: Duration, debugFactor: Int = 4) -> Duration {
        isRelease ? release : release * debugFactor
    }

    /// The package's folder.
    public static let package: String = {
        var folder = (#filePath as NSString).deletingLastPathComponent
        for _ in 0..<2 { folder = (folder as NSString).deletingLastPathComponent }
        return folder
    }()

    /// The folder of real photos beside the checkout; nil if it is missing.
    public static let photos: String? = {
        let path = (package as NSString).deletingLastPathComponent + "/shared/photos"
        return FileManager.default.fileExists(atPath: path) ? path : nil
    }()

    /// Returns the path of an external program; nil if it is not installed.
    public static func program(_ name: String) -> String? {
        let paths = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return paths.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Raises this process's limit of open files, which child processes inherit.
    ///
    /// - Returns: the limit in effect
    public static func raiseDescriptors(to count: Int) -> Int {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        if limit.rlim_cur < rlim_t(count) {
            limit.rlim_cur = min(rlim_t(count), limit.rlim_max)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// Prints a note on standard error, for example that a comparison was skipped.
    public static func report(_ text: String) { FileHandle.standardError.write(Data("note: \(text)\n".utf8)) }
}

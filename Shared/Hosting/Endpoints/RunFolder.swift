import CProcess
import Glibc
public import Messaging

/// The folder with the socket files of the services. Only its owner may enter it, which makes `ipc://` trustworthy.
public struct RunFolder: Sendable, Equatable {
    /// The absolute path.
    public let path: String

    /// Creates the value for a path; nothing is created or checked on disk.
    public init(path: String) {
        self.path = path
    }

    /// Resolves the folder: the flag, `SAFELIGHT_RUN`, `$XDG_RUNTIME_DIR/safelight`, else `/tmp/safelight-<uid>`.
    ///
    /// - Parameters:
    ///   - flag: the value of `--run`; nil if not given.
    ///   - environment: returns the value of an environment variable.
    public init(flag: String?, environment: (String) -> String? = { Environment[$0] }) {
        if let path = flag ?? environment("SAFELIGHT_RUN") {
            self.init(path: path)
        } else if let runtime = environment("XDG_RUNTIME_DIR") {
            self.init(path: runtime + "/safelight")
        } else {
            self.init(path: "/tmp/safelight-\(geteuid())")
        }
    }

    /// Returns the name of the setting that decides the folder.
    static func source(flag: String?, environment: (String) -> String?) -> String {
        if flag != nil { return "--run" }
        return ["SAFELIGHT_RUN", "XDG_RUNTIME_DIR"].first { environment($0) != nil } ?? "--run"
    }

    /// Creates the folder with mode 0700 if it does not exist, and checks it; for services.
    ///
    /// Throws ``HostingError``.
    public func prepare() throws(HostingError) {
        guard path.hasPrefix("/") else { throw .badSetting(source: "--run", reason: "\(path) is not absolute") }
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw .runFolder(path: path, reason: String(cString: strerror(errno)))
        }
        try check()
    }

    /// Checks that the folder is not a link, belongs to this user and is inaccessible to others; for clients.
    ///
    /// Throws ``HostingError``.
    public func check() throws(HostingError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { throw .noRunFolder(path: path) }
            throw .runFolder(path: path, reason: String(cString: strerror(errno)))
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw .unsafeRunFolder(path: path, reason: "it is not a folder; choose another with --run")
        }
        guard status.st_uid == geteuid() else {
            throw .unsafeRunFolder(
                path: path,
                reason: "it belongs to user \(status.st_uid), not to \(geteuid()), and its services cannot be trusted; "
                    + "run this as that user, or choose another with --run"
            )
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw .unsafeRunFolder(
                path: path,
                reason: "others may enter it (mode \(mode), 700 is required); change that, or choose another with --run"
            )
        }
    }

    /// Returns the default address of an endpoint.
    public func address(of endpoint: EndpointName) throws(HostingError) -> EndpointAddress {
        do throws(MessagingError) {
            return try EndpointAddress("ipc://\(path)/\(endpoint.file)")
        } catch {
            throw .badSetting(source: "--run", reason: "\(error)")
        }
    }
}

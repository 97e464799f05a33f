import Glibc
import SystemPackage

/// The lock that allows one `safelight up` for each run folder; the kernel releases it when the process ends.
final class RunFolderLock: Sendable {
    private let file: FileDescriptor

    init(runFolder: String) throws {
        let path = runFolder + "/up.lock"
        do {
            file = try FileDescriptor.open(
                path,
                .readWrite,
                options: [.create, .closeOnExec, .noFollow],
                permissions: [.ownerReadWrite]
            )
        } catch {
            throw CommandFailure(message: "\(path) cannot be locked: \(error)", name: "cannot_lock")
        }
        guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else {
            let holder = Self.owner(file).map { ", process \($0)," } ?? ""
            try? file.close()
            throw CommandFailure(
                message: "another `safelight up`\(holder) is running in \(runFolder); stop it, or use another --run",
                name: "already_running"
            )
        }
        ftruncate(file.rawValue, 0)
        _ = try? file.writeAll(toAbsoluteOffset: 0, "\(getpid())\n".utf8)
    }

    deinit { try? file.close() }

    private static func owner(_ file: FileDescriptor) -> Int? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = (try? bytes.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }) ?? 0
        return Int(String(decoding: bytes[..<count], as: UTF8.self).prefix { $0.isNumber })
    }
}

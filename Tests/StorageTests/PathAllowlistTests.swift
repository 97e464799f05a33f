import Glibc
import TestSupport
import Testing

@testable import Storage

@Suite(.timeLimit(.minutes(5)))
struct PathAllowlistTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("storage") }

    @Test func `files below a root can be opened, and no path leads out of it`() throws {
        #expect(mkdir(folder.path + "/in", 0o700) == 0)
        #expect(mkdir(folder.path + "/in-side", 0o700) == 0)
        folder.overwrite("in/a", [1, 2], at: 0)
        folder.overwrite("secret", [9], at: 0)
        folder.overwrite("in-side/secret", [9], at: 0)
        #expect(symlink("a", folder.path + "/in/link") == 0)
        #expect(symlink("../secret", folder.path + "/in/out") == 0)
        #expect(symlink(folder.path + "/secret", folder.path + "/in/absolute") == 0)
        #expect(symlink("/proc/self/fd", folder.path + "/in/magic") == 0)
        let allowlist = try PathAllowlist(roots: [folder.path + "/in/"])
        #expect(try allowlist.open(folder.path + "/in/a").readAll(limit: 10) == [1, 2])
        #expect(try allowlist.open(folder.path + "/in/link").readAll(limit: 10) == [1, 2])
        for path in [
            "/in/out", "/in/absolute", "/in/../secret", "/in/magic/0", "/secret", "/in-side/secret", "/in", "/in/",
            "/in/b",
            "/in/.",
        ] {
            #expect(throws: StorageError.self) { try allowlist.open(folder.path + path) }
        }
        #expect(throws: StorageError.self) { try allowlist.open("in/a") }
        #expect(throws: StorageError.self) { try allowlist.open(folder.path + "/in/a\0b") }
        #expect(throws: StorageError.self) { try PathAllowlist(roots: ["relative"]) }
        #expect(throws: StorageError.self) { try PathAllowlist(roots: [folder.path + "/none"]) }
    }

    @Test func `a referenced file that was changed or replaced is detected`() throws {
        folder.overwrite("a", [1, 2], at: 0)
        let allowlist = try PathAllowlist(roots: [folder.path])
        let path = folder.path + "/a"
        let identity = try FileIdentity(of: allowlist.open(path))
        try allowlist.open(path).require(identity)
        folder.overwrite("a", [1, 2, 3], at: 0)
        let changed = #expect(throws: StorageError.self) { try allowlist.open(path).require(identity) }
        #expect(changed?.name == "resource_changed")
        folder.overwrite("b", [1, 2], at: 0)
        #expect(rename(folder.path + "/b", path) == 0)
        #expect(throws: StorageError.self) { try allowlist.open(path).require(identity) }
    }
}

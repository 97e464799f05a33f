import Glibc
import TestSupport
import Testing

@testable import Storage

@Suite(.timeLimit(.minutes(5)))
struct LockFileTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("storage") }

    @Test func `the error of a second lock names the holder and says what to do`() throws {
        let path = folder.path + "/library.lock"
        let first = try LockFile(path: path, program: "catalog", using: "/photos", advice: "stop it")
        let error = #expect(throws: StorageError.self) {
            try LockFile(path: path, program: "catalog", using: "/photos", advice: "stop it")
        }
        #expect(error == .inUse("another catalog, pid \(getpid()), is using /photos; stop it"))
        #expect(first.path == path)
    }

    @Test func `a released lock can be acquired again`() throws {
        let path = folder.path + "/library.lock"
        for _ in 0..<3 { _ = try LockFile(path: path, program: "catalog", using: "/photos", advice: "stop it") }
    }

    @Test func `a lock in a missing folder is an error`() {
        #expect(throws: StorageError.self) {
            try LockFile(path: folder.path + "/none/x", program: "catalog", using: "x", advice: "x")
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct HeadFileTests {
    let folder: TemporaryFolder
    var path: String { folder.path + "/head" }

    init() throws { folder = try TemporaryFolder("storage") }

    @Test func `a new file has no head, and a stored head is read by the next process`() throws {
        let file = try HeadFile(path: path)
        #expect(try file.load() == nil)
        for sequence in 0...10 as ClosedRange<Int64> { try file.store(library: "lib-1", sequence: sequence) }
        #expect(try file.load() == .init(library: "lib-1", sequence: 10))
        #expect(try HeadFile(path: path).load() == .init(library: "lib-1", sequence: 10))
    }

    @Test(arguments: [0, 1, 7, 8, 15, 100, 300, 511])
    func `a torn write loses at most the newest head`(written: Int) throws {
        let file = try HeadFile(path: path)
        for sequence in 1...4 as ClosedRange<Int64> { try file.store(library: "lib", sequence: sequence) }
        // Generation 4 is in slot 0: only its first bytes were written, the rest is from another write.
        folder.overwrite("head", [UInt8](repeating: 0xAA, count: 512 - written), at: written)
        #expect(try HeadFile(path: path).load() == .init(library: "lib", sequence: 3))
    }

    @Test func `heads that are not synced leave the last durable one intact`() throws {
        let file = try HeadFile(path: path)
        for sequence in 1...3 as ClosedRange<Int64> { try file.store(library: "lib", sequence: sequence) }
        for sequence in 4...9 as ClosedRange<Int64> {
            try file.store(library: "lib", sequence: sequence, isDurable: false)
            #expect(try HeadFile(path: path).load() == .init(library: "lib", sequence: sequence))
        }
        // Generation 3 is in slot 1: all later heads were written to slot 0.
        folder.overwrite("head", [UInt8](repeating: 0xAA, count: 512), at: 0)
        #expect(try HeadFile(path: path).load() == .init(library: "lib", sequence: 3))
        try file.store(library: "lib", sequence: 10, isDurable: false)
        try file.sync()
        try file.store(library: "lib", sequence: 11, isDurable: false)
        folder.overwrite("head", [UInt8](repeating: 0xAA, count: 512), at: 4096)
        #expect(try HeadFile(path: path).load() == .init(library: "lib", sequence: 10))
    }

    @Test func `a file with two damaged slots is an error and can be overwritten`() throws {
        let file = try HeadFile(path: path)
        try file.store(library: "lib", sequence: 1)
        try file.store(library: "lib", sequence: 2)
        folder.overwrite("head", [1], at: 20)
        folder.overwrite("head", [1], at: 4096 + 20)
        let damaged = try HeadFile(path: path)
        let error = #expect(throws: StorageError.self) { try damaged.load() }
        #expect(error?.name == "corrupt")
        try damaged.store(library: "new", sequence: 0)
        #expect(try HeadFile(path: path).load() == .init(library: "new", sequence: 0))
    }

    @Test func `an invalid head is refused`() throws {
        let file = try HeadFile(path: path)
        #expect(throws: StorageError.self) { try file.store(library: "", sequence: 1) }
        #expect(throws: StorageError.self) { try file.store(library: "a", sequence: -1) }
        #expect(throws: StorageError.self) {
            try file.store(library: String(repeating: "x", count: 129), sequence: 1)
        }
    }

    /// Creates a head file and its database in the same way as a start of the catalog.
    private func start(_ name: String, sequence: Int64) throws -> HeadFile {
        folder.overwrite(name + "/library.sqlite", [1], at: 0)
        return try open(name).renew(library: "lib", sequence: sequence)
    }

    private func open(_ name: String) throws -> HeadFile {
        let base = folder.path + "/" + name
        return try HeadFile(path: base + "/head", database: base + "/library.sqlite")
    }

    private func bytes(_ name: String) throws -> [UInt8] {
        try Descriptor(opening: folder.path + "/" + name, O_RDONLY).read(count: 1 << 20, at: 0)
    }

    @Test func `a head recognizes its files, also after the folder was renamed`() throws {
        #expect(mkdir(folder.path + "/a", 0o700) == 0)
        let file = try start("a", sequence: 1)
        #expect(try file.origin() == .same)
        try file.store(library: "lib", sequence: 2)
        #expect(try open("a").origin() == .same)
        #expect(try open("a").load() == .init(library: "lib", sequence: 2))
        #expect(rename(folder.path + "/a", folder.path + "/b") == 0)
        #expect(try open("b").origin() == .same)
        #expect(access(folder.path + "/b/head.new", F_OK) != 0)
    }

    @Test func `copies of the files are recognized as different files`() throws {
        #expect(mkdir(folder.path + "/a", 0o700) == 0 && mkdir(folder.path + "/b", 0o700) == 0)
        _ = try start("a", sequence: 1)
        let (head, database) = (try bytes("a/head"), try bytes("a/library.sqlite"))
        folder.overwrite("b/head", head, at: 0)
        folder.overwrite("b/library.sqlite", database, at: 0)
        #expect(try open("b").origin() == .otherDatabase)
        _ = try open("b").renew(library: "lib", sequence: 5)
        #expect(try open("b").origin() == .same && open("a").origin() == .same)
    }

    @Test func `an older head copied over the file is detected`() throws {
        #expect(mkdir(folder.path + "/a", 0o700) == 0)
        _ = try start("a", sequence: 1)
        let old = try bytes("a/head")
        _ = try start("a", sequence: 9)
        folder.overwrite("a/head", old, at: 0)
        #expect(try open("a").load() == .init(library: "lib", sequence: 1))
        #expect(try open("a").origin() == .otherHead)
    }

    @Test func `a head of an earlier version has no file identities until it is renewed`() throws {
        #expect(mkdir(folder.path + "/a", 0o700) == 0)
        folder.overwrite("a/library.sqlite", [1], at: 0)
        try HeadFile(path: folder.path + "/a/head").store(library: "lib", sequence: 3)
        let file = try open("a")
        #expect(try file.origin() == .unknown)
        #expect(try file.renew(library: "lib", sequence: 3).origin() == .same)
    }

    @Test func `devices are compared only if birth times are unknown, subvolumes always`() {
        func birth(_ inode: UInt64, _ birth: Int64, _ device: UInt64, _ volume: UInt64 = 0) -> FileBirth {
            FileBirth(inode: inode, birth: birth, device: device, volume: volume)
        }
        #expect(birth(1, 5, 10).isSameFile(as: birth(1, 5, 11)))
        #expect(!birth(1, 5, 10).isSameFile(as: birth(1, 6, 10)))
        #expect(!birth(1, 5, 10).isSameFile(as: birth(2, 5, 10)))
        #expect(birth(1, 0, 10).isSameFile(as: birth(1, 5, 10)))
        #expect(!birth(1, 0, 10).isSameFile(as: birth(1, 5, 11)))
        #expect(!birth(1, 5, 10, 1).isSameFile(as: birth(1, 5, 10, 2)))
        let numbers = birth(.max, -3, 1 << 40, 7)
        #expect(FileBirth(bytes: numbers.bytes[...]) == numbers)
        #expect(FileBirth(bytes: [UInt8](repeating: 0, count: 32)[...]) == nil)
    }
}

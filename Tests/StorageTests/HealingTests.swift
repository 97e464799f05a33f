import Glibc
import TestSupport
import Testing

@testable import Storage

/// Tests of replacing damaged stored files when intact bytes arrive.
@Suite(.timeLimit(.minutes(5)))
struct HealingTests {
    let folder: TemporaryFolder
    let store: ResourceStore

    init() throws {
        folder = try TemporaryFolder("storage")
        store = try ResourceStore(root: folder.path + "/resources")
    }

    private let good = [UInt8](repeating: 7, count: 5000)

    /// Changes a byte of a stored file.
    ///
    /// - Parameter keepsTimes: whether the times of the file do not change
    private func damage(_ digest: ResourceDigest, keepsTimes: Bool) throws {
        let path = store.path(of: digest)
        let before = try DirectoryOperations.status(path)
        #expect(chmod(path, 0o644) == 0)
        let file = open(path, O_WRONLY)
        #expect(pwrite(file, [0xFF] as [UInt8], 1, 100) == 1)
        if keepsTimes {
            var times = [before.st_atim, before.st_mtim]
            #expect(futimens(file, &times) == 0)
        }
        close(file)
    }

    @Test func `a file modified since its publication is replaced, an unmodified one is kept`() throws {
        let digest = try store.put(bytes: good).digest
        let inode = try DirectoryOperations.status(store.path(of: digest)).st_ino
        let existing = try store.put(bytes: good)
        #expect(existing.wasPresent && !existing.isHealed)
        #expect(try DirectoryOperations.status(store.path(of: digest)).st_ino == inode)

        try damage(digest, keepsTimes: false)
        let reader = try store.open(digest)
        let healed = try store.put(bytes: good)
        #expect(healed.wasPresent && healed.isHealed)
        #expect(try store.readAll(digest, limit: 1 << 20) == good)
        // A reader that had the damaged file open continues to read it.
        #expect(try reader.read(offset: 100, count: 1) == [0xFF])
        #expect(try !store.put(bytes: good).isHealed)
        #expect(try DirectoryOperations.names(in: store.incoming).isEmpty)
    }

    @Test func `a repair is reported until its follow-up has ended, also by the next process`() throws {
        let digest = try store.put(bytes: good).digest
        #expect(try !store.put(bytes: good).isHealingOpen)
        try damage(digest, keepsTimes: false)
        #expect(try store.put(bytes: good).isHealingOpen)
        let next = try ResourceStore(root: store.root)
        let again = try next.put(bytes: good)
        #expect(again.isHealingOpen && !again.isHealed && again.wasPresent)
        #expect(try next.stage(bytes: good).stored.isHealingOpen)
        // The mark is not a file of the store.
        #expect(try next.digests(in: String(digest.text.prefix(2))).mapValues(\.size) == [digest: 5000])
        next.endHealing(of: digest)
        #expect(try !next.put(bytes: good).isHealingOpen && !next.stage(bytes: good).stored.isHealingOpen)

        try damage(digest, keepsTimes: false)
        _ = try store.put(bytes: good)
        #expect(try store.remove(digest))
        #expect(try !ResourceStore.hasFiles(root: store.root), "the mark is removed with its file")
    }

    @Test func `bytes whose presence is hidden replace a stored file that they would be compared with`() throws {
        let digest = try store.put(bytes: good).digest
        for isStaged in [false, true] {
            try damage(digest, keepsTimes: true)
            let writer = try store.writer(limit: 1 << 20)
            try writer.append(good)
            let stored =
                try isStaged
                ? writer.stage(verifies: true, hidesPresence: true).stored
                : writer.finish(verifies: true, hidesPresence: true)
            #expect(stored.wasPresent && !stored.isHealed, "it is not known whether it was damaged")
            #expect(stored.isHealingOpen)
            #expect(try store.readAll(digest, limit: 1 << 20) == good)
            let status = try DirectoryOperations.status(store.path(of: digest))
            #expect(PublicationStamp.isIntact(status, digest))
            #expect(try DirectoryOperations.names(in: store.incoming).isEmpty)
            store.endHealing(of: digest)
        }
        // New bytes have no follow-up.
        let writer = try store.writer(limit: 10)
        try writer.append([1])
        let new = try writer.finish(verifies: true, hidesPresence: true)
        #expect(!new.wasPresent && !new.isHealingOpen)
    }

    @Test func `a copy that replaced a stored file is compared, and kept if it is correct`() throws {
        let digest = try store.put(bytes: good).digest
        let path = store.path(of: digest)
        folder.overwrite("copy", good, at: 0)
        #expect(rename(folder.path + "/copy", path) == 0)
        let inode = try DirectoryOperations.status(path).st_ino
        #expect(try !store.put(bytes: good).isHealed)
        #expect(try DirectoryOperations.status(path).st_ino == inode)
    }

    @Test func `damage without changed times is found by comparing, or after the file was read`() throws {
        let digest = try store.put(bytes: good).digest
        try damage(digest, keepsTimes: true)
        #expect(try !store.put(bytes: good).isHealed, "the damage is not visible in the file's status")
        #expect(try store.put(bytes: good, verifies: true).isHealed)
        #expect(try store.readAll(digest, limit: 1 << 20) == good)

        for isWhole in [true, false] {
            try damage(digest, keepsTimes: true)
            let reader = try ResourceStore(root: store.root, isReadOnly: true).open(digest)
            let error = #expect(throws: StorageError.self) {
                if isWhole { _ = try reader.readAll(limit: 1 << 20) } else { try reader.verify() }
            }
            #expect(error?.name == "resource_changed")
            #expect(try store.put(bytes: good).isHealed)
            #expect(try store.readAll(digest, limit: 1 << 20) == good)
        }
    }

    @Test func `a file of another size is replaced, and copying or referring also replaces damage`() throws {
        let digest = try store.put(bytes: good).digest
        #expect(truncate(store.path(of: digest), 10) == 0)
        #expect(try store.put(bytes: good).isHealed)

        folder.overwrite("source", good, at: 0)
        try damage(digest, keepsTimes: false)
        #expect(try store.put(copying: folder.path + "/source", limit: 1 << 20).isHealed)
        try damage(digest, keepsTimes: false)
        let file = try PathAllowlist(roots: [folder.path]).open(folder.path + "/source")
        #expect(try store.refer(to: file, at: folder.path + "/source", limit: 1 << 20).isHealed)
        #expect(try store.reference(of: digest) == nil)
        #expect(try store.readAll(digest, limit: 1 << 20) == good)
    }

    @Test func `a damaged copy in another store is replaced by the good one`() throws {
        let digest = try store.put(bytes: good).digest
        let backup = try ResourceStore(root: folder.path + "/backup")
        folder.overwrite("backup/copy", [UInt8](repeating: 8, count: 5000), at: 0)
        _ = try backup.makeFolders(of: digest)
        #expect(rename(folder.path + "/backup/copy", backup.path(of: digest)) == 0)
        #expect(try backup.adopt(digest, from: store, verifies: true) == .linked)
        #expect(try backup.readAll(digest, limit: 1 << 20) == good)
        #expect(try backup.adopt(digest, from: store, verifies: true) == .present)
        #expect(try !backup.put(bytes: good).isHealingOpen, "the repair of a copy has no follow-up")
    }

    @Test func `a file does not count as newer after another link to it was removed`() throws {
        let digest = try store.put(bytes: good).digest
        let path = store.path(of: digest)
        guard try FileBirth(path: path).birth != 0 else { return }
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let stored = microseconds(now)
        repeat {
            #expect(link(path, folder.path + "/link") == 0 && unlink(folder.path + "/link") == 0)
        } while try microseconds(DirectoryOperations.status(path).st_ctim) <= stored
        let file = try #require(try store.digests(in: String(digest.text.prefix(2)))[digest])
        #expect(file.changedAt > stored)
        #expect(!store.wasCreated(digest, after: stored) && store.wasCreated(digest, after: stored - 60_000_000))
        let earlier = stored - 60_000_000
        #expect(!store.wasCreated(digest, after: earlier, until: earlier + 1), "the clock was set back since")
    }

    @Test func `the mark of a kept file is stored beside it and removed with it`() throws {
        let digest = try store.put(bytes: good).digest
        let part = String(digest.text.prefix(2))
        #expect(try store.digests(in: part)[digest]?.isKept == false && store.notedLoss() == nil)
        try store.keep(digest)
        try store.noteLoss("a 1")
        let next = try ResourceStore(root: store.root)
        #expect(try next.digests(in: part).mapValues(\.isKept) == [digest: true] && next.notedLoss() == "a 1")
        next.endKeeping(digest)
        #expect(try next.digests(in: part)[digest]?.isKept == false)

        try store.keep(digest)
        let ticket = try #require(store.removalTicket(digest))
        #expect(try store.remove(digest, ifStillAt: ticket) == 5000)
        // A missing file is not marked.
        try store.keep(digest)
        #expect(try !ResourceStore.hasFiles(root: store.root))
    }

    @Test func `a start keeps the time of the last stored file, also with a clock that is behind`() throws {
        #expect(try ResourceStore.lastStored(root: folder.path + "/none") == nil)
        _ = try store.put(bytes: good)
        folder.overwrite("resources/.incoming/1-1", good, at: 0)
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let last = timespec(tv_sec: now.tv_sec + 3600, tv_nsec: 0)
        var times = [last, last]
        #expect(utimensat(AT_FDCWD, store.incoming, &times, 0) == 0)
        #expect(try store.clearIncoming() == 1)
        #expect(try ResourceStore.lastStored(root: store.root) == microseconds(last))
    }

    @Test func `bytes that are leased or were published again are not removed`() throws {
        var stored: StoredResource? = try store.put(bytes: good)
        let digest = try #require(stored?.digest)
        #expect(store.removalTicket(digest) == nil)
        #expect(try store.remove(digest) == false)
        stored = nil
        let ticket = try #require(store.removalTicket(digest))
        _ = try store.put(bytes: good)
        #expect(try store.remove(digest, ifStillAt: ticket) == nil)
        let next = try #require(store.removalTicket(digest))
        let lease = store.lease(digest)
        #expect(try store.remove(digest, ifStillAt: next) == nil)
        withExtendedLifetime(lease) {}
    }

    @Test func `bytes without a lease are removed, as is a reference for them`() throws {
        let digest = try store.put(bytes: good).digest
        let part = String(digest.text.prefix(2))
        #expect(try store.digests(in: part).mapValues(\.size) == [digest: 5000])
        store.suspendRemovals()
        let ticket = try #require(store.removalTicket(digest))
        #expect(try store.remove(digest, ifStillAt: ticket) == nil, "a backup is running")
        store.resumeRemovals()
        #expect(try store.remove(digest, ifStillAt: ticket) == 5000)
        #expect(try store.remove(digest, ifStillAt: ticket) == nil)

        folder.overwrite("source", good, at: 0)
        let file = try PathAllowlist(roots: [folder.path]).open(folder.path + "/source")
        _ = try store.refer(to: file, at: folder.path + "/source", limit: 1 << 20)
        #expect(try store.digests(in: part).keys.sorted() == [digest])
        // A transaction that refers to the file again has ended its lease before the removal.
        let earlier = try #require(store.removalTicket(digest))
        #expect(try store.refer(to: file, at: folder.path + "/source", limit: 1 << 20).wasPresent)
        #expect(try store.remove(digest, ifStillAt: earlier) == nil)
        let reference = try #require(store.removalTicket(digest))
        #expect(try store.remove(digest, ifStillAt: reference) ?? 0 > 0)
        #expect(try store.digests(in: part).isEmpty && access(folder.path + "/source", F_OK) == 0)
    }
}

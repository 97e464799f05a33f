import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Storage

/// Tests of files that are stored together, with one sync.
@Suite(.timeLimit(.minutes(5)))
struct StagingTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("storage") }

    private final class Trace: Sendable {
        let steps = Mutex<[ResourceStore.Step]>([])
        /// The number of filesystem syncs that are still to fail.
        let failures = Mutex(0)

        func record(_ step: ResourceStore.Step) throws(StorageError) {
            steps.withLock { $0.append(step) }
            guard case .syncFilesystem = step else { return }
            let fails = failures.withLock { failures in
                defer { failures = max(0, failures - 1) }
                return failures > 0
            }
            if fails { throw .io("test") }
        }

        func next() -> [ResourceStore.Step] {
            steps.withLock { steps in
                defer { steps = [] }
                return steps
            }
        }
    }

    private func store(_ trace: Trace) throws -> ResourceStore {
        try ResourceStore(root: folder.path + "/r", isReadOnly: false, watcher: trace.record)
    }

    private func isStamped(_ resource: StagedResource, _ store: ResourceStore) throws -> Bool {
        let digest = resource.stored.digest
        return PublicationStamp.isIntact(try DirectoryOperations.status(store.path(of: digest)), digest)
    }

    private func content(_ number: Int) -> [UInt8] { [1, 2, 3, UInt8(number)] }

    @Test func `bytes whose presence is hidden are synced whether or not they are stored already`() throws {
        let trace = Trace()
        let store = try store(trace)
        func syncsOfIncoming() -> Int {
            trace.next().count { step in
                if case .syncFile(let path) = step { path.hasPrefix(store.incoming) } else { false }
            }
        }
        func finish(_ bytes: [UInt8], hidesPresence: Bool) throws -> (wasPresent: Bool, syncs: Int) {
            let writer = try store.writer(limit: 10)
            try writer.append(bytes)
            let stored = try writer.finish(hidesPresence: hidesPresence)
            #expect(try store.readAll(stored.digest, limit: 10) == bytes)
            return (stored.wasPresent, syncsOfIncoming())
        }
        #expect(try finish(content(0), hidesPresence: true) == (false, 1))
        #expect(try finish(content(0), hidesPresence: true) == (true, 1))
        #expect(try finish(content(0), hidesPresence: false) == (true, 0))
        let staged = try store.stage(bytes: content(0), hidesPresence: true)
        #expect(syncsOfIncoming() == 1 && staged.stored.wasPresent)
        let new = try store.stage(bytes: content(1), hidesPresence: true)
        #expect(syncsOfIncoming() == 0, "the new file is synced with the others")
        try store.makeDurable([staged, new])
        #expect(try isStamped(staged, store) && isStamped(new, store))
        #expect(try DirectoryOperations.names(in: store.incoming).isEmpty)
    }

    @Test func `many staged files become durable with one sync`() throws {
        let trace = Trace()
        let store = try store(trace)
        let staged = try (0..<20).map { try store.stage(bytes: content($0)) }
        #expect(
            trace.next().dropFirst(2).allSatisfy {
                switch $0 {
                case .write, .rename: true
                default: false
                }
            }
        )
        #expect(try staged.allSatisfy { try !isStamped($0, store) && !$0.stored.wasPresent })
        try store.makeDurable(staged)
        #expect(trace.next() == [.syncFilesystem(store.root)])
        #expect(try staged.allSatisfy { try isStamped($0, store) })
        for number in 0..<20 {
            #expect(try store.readAll(staged[number].stored.digest, limit: 10) == content(number))
        }
        #expect(try DirectoryOperations.names(in: store.incoming).isEmpty)
        // The folders of the files are durable too: storing the next files in them syncs only the innermost one.
        let again = try store.put(bytes: content(0))
        #expect(again.wasPresent)
        #expect(trace.next().count { if case .syncFolder = $0 { true } else { false } } == 1)
    }

    @Test func `bytes that another request has staged are synced before they count as stored`() throws {
        let trace = Trace()
        let store = try store(trace)
        let staged = try store.stage(bytes: content(0))
        _ = trace.next()
        let stored = try store.put(bytes: content(0))
        #expect(stored.wasPresent)
        let path = store.path(of: stored.digest)
        let steps = trace.next()
        #expect(steps.contains(.syncFile(path)), "\(steps)")
        #expect(try isStamped(staged, store))
        // A file that is durable is not synced again.
        _ = try store.put(bytes: content(0))
        #expect(!trace.next().contains(.syncFile(path)))
    }

    @Test func `few staged files are synced one by one, with their folders`() throws {
        let trace = Trace()
        let store = try store(trace)
        let staged = try store.stage(bytes: content(0))
        _ = trace.next()
        try store.makeDurable([staged])
        let digest = staged.stored.digest
        let first = "\(store.root)/\(digest.text.prefix(2))"
        let second = "\(first)/\(digest.text.dropFirst(2).prefix(2))"
        #expect(
            trace.next() == [
                .syncFile(store.path(of: digest)), .syncFolder(store.root), .syncFolder(first), .syncFolder(second),
            ]
        )
        #expect(try isStamped(staged, store))
        try store.makeDurable([])
        #expect(trace.next() == [])
    }

    @Test func `a staged file whose bytes were lost in a power failure is replaced when they arrive again`() throws {
        let staged = try store(Trace()).stage(bytes: content(0))
        let store = try store(Trace())
        let path = store.path(of: staged.stored.digest)
        #expect(chmod(path, 0o644) == 0)
        let file = open(path, O_WRONLY)
        #expect(pwrite(file, [0, 0, 0, 0] as [UInt8], 4, 0) == 4)
        close(file)
        let again = try store.stage(bytes: content(0))
        #expect(again.stored.isHealed)
        try store.makeDurable([again])
        #expect(try store.readAll(again.stored.digest, limit: 10) == content(0))
    }

    @Test func `bytes staged twice are stored once, whichever sync comes first`() throws {
        let store = try store(Trace())
        let first = try store.stage(bytes: content(0))
        let second = try store.stage(bytes: content(0))
        #expect(!first.stored.wasPresent && second.stored.wasPresent)
        try store.makeDurable([second])
        try store.makeDurable([first])
        #expect(try store.readAll(first.stored.digest, limit: 10) == content(0))
        #expect(try DirectoryOperations.names(in: store.incoming).isEmpty)
    }

    @Test func `a failed sync fails all files that were written before it, and removes them`() throws {
        let trace = Trace()
        let store = try store(trace)
        let durable = try (0..<5).map { try store.stage(bytes: content($0)) }
        try store.makeDurable(durable)
        let staged = try (5..<10).map { try store.stage(bytes: content($0)) }
        // These were written before the failure, which is reported to the others.
        let waiting = try (10..<15).map { try store.stage(bytes: content($0)) }
        let known = try store.stage(bytes: content(0))
        trace.failures.withLock { $0 = 1 }
        #expect(throws: StorageError.io("test")) { try store.makeDurable(staged + [known]) }
        #expect(throws: StorageError.self) { try store.makeDurable(waiting) }
        for resource in staged + waiting { #expect(!store.contains(resource.stored.digest)) }
        for resource in durable { #expect(store.contains(resource.stored.digest)) }
        let again = try (5..<15).map { try store.stage(bytes: content($0)) }
        try store.makeDurable(again)
        #expect(try again.allSatisfy { try isStamped($0, store) })
    }
}

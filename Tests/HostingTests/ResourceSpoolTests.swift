import Basics
import Contracts
import Foundation
import Hosting
import JSONValue
import Storage
import Synchronization
import TestSupport
import Testing

/// Tests of the copies of a library's files on another machine than the catalog.
@Suite(.timeLimit(.minutes(1)))
struct ResourceSpoolTests {
    let folder: TestSupport.TemporaryFolder

    init() throws { folder = try TestSupport.TemporaryFolder("spool") }

    private func spool(_ maxBytes: Int64 = 1 << 20) throws -> ResourceSpool {
        try ResourceSpool(folder: folder.file("originals"), maxBytes: maxBytes, blockingIO: BlockingIOExecutor())
    }

    private static func bytes(_ count: Int, _ value: UInt8) -> (bytes: Bytes, digest: String) {
        let bytes = Bytes(repeating: value, count: count)
        return (bytes, SHA256.hash(data: bytes).hexadecimal)
    }

    /// The names of all files but the lock.
    private var files: Set<String> {
        let all = FileManager.default.enumerator(atPath: folder.file("originals"))?.compactMap { $0 as? String } ?? []
        return Set(all.filter { $0 != "lock" && !FileManager.default.isDirectory(folder.file("originals/\($0)")) })
    }

    @Test func `a file is copied once for all its requests, and its bytes are unchanged`() async throws {
        let spool = try spool()
        let (bytes, digest) = Self.bytes(100_000, 7)
        let (started, calls) = (Promise<Void>(), AwaitableValue(0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<5 {
                group.addTask {
                    try await spool.require(digest) { sink throws(RPCError) in
                        calls.withLock { $0 += 1 }
                        await started.value()
                        try await sink(Array(bytes[..<40_000]))
                        try await sink(Array(bytes[40_000...]))
                    }
                }
            }
            await calls.wait { $0 == 1 }
            started.fulfill(())
            try await group.waitForAll()
        }
        #expect(calls.withLock { $0 } == 1)
        #expect(try ResourceFolder(spool: spool).open(digest).readAll(limit: 1 << 20) == bytes)
        #expect(spool.metrics["bytes"] == 100_000)
    }

    @Test func `a folder that was deleted is created again`() async throws {
        let spool = try spool()
        let (bytes, digest) = Self.bytes(1000, 3)
        for _ in 0..<2 {
            try await spool.require(digest) { sink throws(RPCError) in try await sink(bytes) }
            #expect(try ResourceFolder(spool: spool).open(digest).readAll(limit: 1 << 20) == bytes)
            #expect(spool.metrics["bytes"] == 1000)
            try FileManager.default.removeItem(atPath: folder.file("originals"))
            let resources = ResourceFolder(spool: spool)
            #expect(throws: Never.self, "no library is on this machine") { try resources.check() }
            let missing = #expect(throws: RPCError.self) { try resources.open(digest) }
            #expect(missing?.errorCode == .missingResource)
        }
    }

    @Test func `a file whose transfer took long is kept until it can be opened`() async throws {
        let now = AwaitableValue<Int64>(0)
        let spool = try ResourceSpool(
            folder: folder.file("originals"),
            maxBytes: 100_000,
            blockingIO: BlockingIOExecutor(),
            clock: MonotonicClock { now.withLock { $0 } }
        )
        let (slow, other) = (Self.bytes(90_000, 1), Self.bytes(30_000, 2))
        try await spool.require(slow.digest) { sink throws(RPCError) in
            now.withLock { $0 += 60_000_000 }
            try await sink(slow.bytes)
        }
        try await spool.require(other.digest) { sink throws(RPCError) in try await sink(other.bytes) }
        let resources = ResourceFolder(spool: spool)
        #expect(resources.isLocal(slow.digest) && resources.isLocal(other.digest))
    }

    @Test func `a copy that a worker reports is removed if it is damaged, and copied again for the next request`()
        async throws
    {
        let spool = try spool()
        let (bytes, digest) = Self.bytes(1000, 3)
        try await spool.require(digest) { sink throws(RPCError) in try await sink(bytes) }
        try await PythonPool().run { pool in
            let runner = ResourceJobRunner(pool, resources: ResourceFolder(spool: spool)) { _ in }
            let job = WorkerJob(method: "refuse", params: ["name": "resource_changed"])
            // The worker has read an older copy, or is wrong.
            await #expect(throws: WorkerFailure.self) { try await runner.run(job, over: digest) }
            #expect(files.count == 1 && spool.metrics["bytes"] == 1000)
            let name = try #require(files.first)
            try FileManager.default.removeItem(atPath: folder.file("originals/\(name)"))
            try folder.write(Bytes(repeating: 4, count: 1000), to: "originals/\(name)")
            await #expect(throws: WorkerFailure.self) { try await runner.run(job, over: digest) }
        }
        #expect(files == [] && spool.metrics["bytes"] == 0)
        try await spool.require(digest) { sink throws(RPCError) in try await sink(bytes) }
        #expect(files.count == 1 && spool.metrics["bytes"] == 1000)
    }

    @Test func `a transfer that fails, or that has other bytes than the digest, leaves no file`() async throws {
        let spool = try spool()
        let digest = Self.bytes(10, 1).digest
        let wrong = await #expect(throws: RPCError.self) {
            try await spool.require(digest) { sink throws(RPCError) in try await sink([1, 2, 3]) }
        }
        #expect(wrong?.name == "resource_changed")
        let lost = await #expect(throws: RPCError.self) {
            try await spool.require(digest) { sink throws(RPCError) in
                try await sink([1, 1, 1])
                throw ErrorCode.connectionLost.error("the catalog was killed")
            }
        }
        #expect(lost?.name == "connection_lost")
        #expect(files == [])
        try await spool.require(digest) { sink throws(RPCError) in try await sink(Bytes(repeating: 1, count: 10)) }
        #expect(files.count == 1)
    }

    @Test func `a transfer is cancelled when no request waits for it any more`() async throws {
        let spool = try spool()
        let (bytes, digest) = Self.bytes(1000, 3)
        let (started, ended, go) = (AwaitableValue(0), AwaitableValue(0), Promise<Void>())
        func require() -> Task<Void, any Error> {
            Task {
                try await spool.require(digest) { sink throws(RPCError) in
                    started.withLock { $0 += 1 }
                    await withTaskCancellationHandler {
                        await go.value()
                    } onCancel: {
                        ended.withLock { $0 += 1 }
                        go.fulfill(())
                    }
                    guard !Task.isCancelled else { throw ErrorCode.userCancelled.error("cancelled") }
                    try await sink(bytes)
                }
            }
        }
        let first = require()
        await started.wait { $0 == 1 }
        first.cancel()
        await ended.wait { $0 == 1 }
        let error = await #expect(throws: RPCError.self) { try await first.value }
        #expect(error?.name == "user_cancelled")
        // The request is answered before the transfer has removed its file.
        while !files.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        try await spool.require(digest) { sink throws(RPCError) in try await sink(bytes) }
        #expect(files.count == 1)
    }

    @Test func `the oldest files are removed above the budget, and incomplete files at the next start`() async throws {
        let now = AwaitableValue<Int64>(0)
        let makeSpool = { [folder] in
            try ResourceSpool(
                folder: folder.file("originals"),
                maxBytes: 100_000,
                blockingIO: BlockingIOExecutor(),
                clock: MonotonicClock { now.withLock { $0 } }
            )
        }
        var spool: ResourceSpool? = try makeSpool()
        for value in 0..<6 {
            now.withLock { $0 += 11_000_000 }
            let (bytes, digest) = Self.bytes(30_000, UInt8(value))
            try await spool?.require(digest) { sink throws(RPCError) in try await sink(bytes) }
        }
        let bytes = spool?.metrics["bytes"]
        #expect(throws: StorageError.self, "one process at a time") { try makeSpool() }
        spool = nil
        #expect(files.count <= 3)
        #expect(files.contains { $0.hasSuffix(Self.bytes(30_000, 5).digest) }, "the newest file is kept")
        try folder.write([1, 2, 3], to: "originals/.incoming/1")
        let again = try makeSpool()
        #expect(!files.contains(".incoming/1"))
        #expect(again.metrics["bytes"] == bytes)
    }
}

extension FileManager {
    fileprivate func isDirectory(_ path: String) -> Bool {
        var isDirectory: ObjCBool = false
        return fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory.boolValue
    }
}

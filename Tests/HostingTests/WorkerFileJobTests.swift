import Glibc
import JSONValue
import Testing

@testable import Hosting

/// Tests of the unnamed files that workers send their results to.
@Suite(.timeLimit(.minutes(1)))
struct WorkerFileJobTests {
    @Test func `a missing folder is created`() throws {
        let folder = TemporaryFolder()
        defer { for name in ["/cache/videos", "/cache"] { rmdir(folder.path + name) } }
        for _ in 0..<2 {
            let file = try WorkerFileJob.makeFile(in: folder.path + "/cache/videos")
            #expect(write(file, [1, 2, 3], 3) == 3)
            close(file)
            #expect(rmdir(folder.path + "/cache/videos") == 0 && rmdir(folder.path + "/cache") == 0)
        }
    }

    @Test
    func `after a worker was killed in the middle of a record, the next attempt has the complete file`() async throws {
        let folder = TemporaryFolder()
        try await PythonPool().run { pool in
            let files = WorkerFileJob(ResourceJobRunner(pool) { _ in }, folder: folder.path, maxBytes: 1000)
            let job = WorkerJob(method: "video", params: ["started": .string(folder.path + "/started")])
            let result = try await files.run(job, over: "d") { _ in }
            defer { close(result.descriptor) }
            var bytes = [UInt8](repeating: 0, count: 16)
            #expect(pread(result.descriptor, &bytes, 16, 0) == 8)
            #expect(bytes[..<8].elementsEqual("complete".utf8))
            #expect(pool.metrics()["crashed"] == 1)
        }
    }

    @Test func `a worker that keeps the pipe open after its response does not delay the result`() async throws {
        let folder = TemporaryFolder()
        let started = folder.write("started", "")
        try await PythonPool().run { pool in
            let files = WorkerFileJob(ResourceJobRunner(pool) { _ in }, folder: folder.path, maxBytes: 1000)
            let job = WorkerJob(method: "video", params: ["started": .string(started), "keeps": true])
            for _ in 0..<2 {
                let result = try await files.run(job, over: "d") { _ in }
                defer { close(result.descriptor) }
                var bytes = [UInt8](repeating: 0, count: 16)
                #expect(pread(result.descriptor, &bytes, 16, 0) == 8)
                #expect(bytes[..<8].elementsEqual("complete".utf8))
            }
        }
    }
}

import CProcess
import Glibc
import JSONValue
import TestSupport
import Testing

@testable import Hosting

@Suite(.timeLimit(.minutes(5)))
struct WorkerProtocolTests {
    private func pair() -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        #expect(safelight_socket_pair(&ends) == 0)
        return (ends[0], ends[1])
    }

    private func send(_ bytes: [UInt8], to socket: Int32) {
        #expect(write(socket, bytes, bytes.count) == bytes.count)
    }

    private func framed(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        return withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { Array($0) } + bytes
    }

    @Test func `a frame is encoded to the documented bytes`() {
        let frame = WorkerFrame(header: ["method": "ping", "params": [:]], attachments: [[1, 2], []])
        #expect(frame.head == framed(#"{"method":"ping","params":{},"attachments":[2,0]}"#))
    }

    @Test func `a frame that arrives byte by byte is decoded`() throws {
        let (a, b) = pair()
        defer { for end in [a, b] { close(end) } }
        _ = fcntl(b, F_SETFL, O_NONBLOCK)
        let frame = WorkerFrame(header: ["method": "x"], attachments: [[9, 8, 7], [], [6]])
        let bytes = frame.head + frame.attachments.joined()
        var reader = WorkerFrame.Reader(limit: 100)
        for byte in bytes.dropLast() {
            send([byte], to: a)
            #expect(try reader.receive(from: b) == .waiting)
        }
        send([bytes[bytes.count - 1]], to: a)
        guard case .frame(let read) = try reader.receive(from: b) else {
            Issue.record("no frame")
            return
        }
        #expect(read.attachments == frame.attachments)
        #expect(read.header["method"] == "x")
    }

    @Test(arguments: [
        ([0, 0, 0, 1, 65] as [UInt8], "a frame of 1 bytes"), ([0xFF, 0xFF, 0xFF, 0xFF], nil),
        ([0, 0, 0, 2] + Array("[]".utf8), "the header is not an object"),
    ])
    func `an invalid frame is refused`(bytes: [UInt8], reason: String?) {
        let (a, b) = pair()
        defer { for end in [a, b] { close(end) } }
        send(bytes, to: a)
        var reader = WorkerFrame.Reader(limit: 100)
        let error = #expect(throws: WorkerChannelError.self) { try reader.receive(from: b) }
        #expect(error == reason.map(WorkerChannelError.malformed) ?? .tooLarge)
    }

    @Test(arguments: [
        "[-1]", "[1.5]", "[\"1\"]", "[101]", "[60,60]", "[9223372036854775807,9223372036854775807]",
        "[" + Array(repeating: "0", count: 65).joined(separator: ",") + "]",
    ])
    func `invalid attachment lengths are refused before the attachments are read`(lengths: String) {
        let (a, b) = pair()
        defer { for end in [a, b] { close(end) } }
        send(framed("{\"attachments\":\(lengths)}"), to: a)
        var reader = WorkerFrame.Reader(limit: 100)
        #expect(throws: WorkerChannelError.self) { try reader.receive(from: b) }
    }

    @Test func `random frames are decoded or refused without a crash`() throws {
        var random = SeededRandom(named: "random frames of workers")
        let good = framed(#"{"method":"a","params":{},"files":0,"attachments":[3,1]}"#) + [1, 2, 3, 4]
        for _ in 0..<2000 {
            let (a, b) = pair()
            defer { for end in [a, b] { close(end) } }
            var bytes = good
            for _ in 0...Int.random(in: 0..<4, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            send(bytes, to: a)
            shutdown(a, Int32(SHUT_WR))
            var reader = WorkerFrame.Reader(limit: 1000)
            _ = try? reader.receive(from: b)
        }
    }

    @Test func `the worker's loop responds, reports errors, receives files and ends with the socket`() async throws {
        let (a, b) = pair()
        let folder = TemporaryFolder()
        async let loop = onOwnThread { () -> WorkerChannelError in
            defer { close(b) }
            do throws(WorkerChannelError) {
                try WorkerProcess.serve(socket: b, attachmentLimit: 1 << 20) { job throws(WorkerJobError) in
                    switch job.method {
                    case "echo": return WorkerResult(result: job.params, attachments: job.attachments)
                    case "read":
                        let contents = try job.contents(ofFile: 0, limit: 100)
                        return WorkerResult(result: [:], attachments: [contents])
                    default: throw WorkerJobError(name: "no_such_job", message: "there is no \(job.method)")
                    }
                }
            } catch {
                return error
            }
        }
        await onOwnThread {
            do { try self.exchangeFrames(with: a, folder) } catch { Issue.record(error) }
            close(a)
        }
        #expect(await loop == .closed)
    }

    private func exchangeFrames(with a: Int32, _ folder: TemporaryFolder) throws {
        var reader = WorkerFrame.Reader(limit: 1 << 20)
        var phases: [JSON] = []
        func exchange(_ header: JSON, _ attachments: [[UInt8]] = [], files: [Int32] = []) throws -> WorkerFrame? {
            var writer = WorkerFrame.Writer(WorkerFrame(header: header, attachments: attachments), files: files)
            while !writer.isDone { try writer.send(to: a) }
            while case .frame(let frame) = try reader.receive(from: a) {
                guard let phase = frame.header["phase"] else { return frame }
                phases.append(phase)
            }
            return nil
        }
        guard case .frame(let hello) = try reader.receive(from: a) else {
            Issue.record("no frame")
            return
        }
        #expect(hello.header["worker"] == 1)
        let echo = try exchange(["method": "echo", "params": ["a": 1]], [[1], [2, 3]])
        #expect(echo?.header["result"] == ["a": 1])
        #expect(echo?.attachments == [[1], [2, 3]])
        let refused = try exchange(["method": "x", "params": [:]])
        #expect(refused?.header["error"] == ["name": "no_such_job", "message": "there is no x"])
        #expect(try exchange(["hello": 1])?.header["error"]?["name"] == "invalid_request")
        #expect(try exchange(["method": "x", "params": [:], "files": 1])?.header["error"]?["name"] == "io_error")
        let file = open(folder.write("file", "content"), O_RDONLY)
        let read = try exchange(["method": "read", "params": [:], "files": 1], files: [file])
        #expect(read?.attachments == [Array("content".utf8)])
        #expect(phases == ["reading"], "reported when the bytes have been read from the file")
        let large = open(folder.write("large", String(repeating: "x", count: 101)), O_RDONLY)
        let tooLarge = try exchange(["method": "read", "params": [:], "files": 1], files: [large])
        #expect(tooLarge?.header["error"]?["name"] == "too_large")
        for file in [file, large] { close(file) }
    }

    @Test func `the process and user of a socket's peer can be read`() {
        let (a, b) = pair()
        defer { for end in [a, b] { close(end) } }
        var (process, user, group): (Int32, UInt32, UInt32) = (0, 0, 0)
        #expect(safelight_peer_credentials(a, &process, &user, &group) == 0)
        #expect(process == getpid())
        #expect(user == getuid())
    }
}

@Suite(.timeLimit(.minutes(5)))
struct WorkerQueueTests {
    @Test func `jobs are dequeued by priority, then by arrival, and can be removed`() {
        var queue = WorkerQueue<Int>(limit: 300)
        for id in 0..<300 {
            let wasAppended = queue.append(id, id: UInt64(id), priority: WorkerPriority.allCases[id % 3])
            #expect(wasAppended)
        }
        let wasAppended = queue.append(300, id: 300, priority: .high)
        #expect(!wasAppended)
        let (removed, again, next) = (queue.remove(3), queue.remove(3), queue.next())
        #expect(removed == 3)
        #expect(again == nil)
        #expect(next == 0)
        queue.requeue(0, id: 0, priority: .high)
        let expected = [0] + (2..<100).map { $0 * 3 } + (0..<100).map { $0 * 3 + 1 } + (0..<100).map { $0 * 3 + 2 }
        let rest = queue.removeAll()
        #expect(rest == expected)
        #expect(queue.count == 0)
    }

    @Test func `clients take turns, each with its urgent jobs first, and a requeued job is next`() {
        var queue = WorkerQueue<Int>(limit: 300)
        var (lastID, wereAppended) = (0 as UInt64, true)
        func add(_ job: Int, _ priority: WorkerPriority, _ client: String) {
            lastID += 1
            wereAppended = queue.append(job, id: lastID, priority: priority, from: .identity(client)) && wereAppended
        }
        for job in 0..<3 { add(job, .normal, "many") }
        for job in 3..<6 { add(job, .high, "many") }
        add(10, .low, "one")
        add(11, .normal, "one")
        add(20, .high, "other")
        #expect(wereAppended && queue.count == 9)
        let first = [queue.next(), queue.next(), queue.next()]
        #expect(first == [3, 11, 20])
        queue.requeue(11, id: 100, priority: .normal, from: .identity("one"))
        queue.requeue(20, id: 101, priority: .high, from: .identity("other"))
        let (rest, again) = (queue.removeAll(), queue.remove(101))
        #expect(rest == [20, 11, 4, 5, 0, 1, 2, 10] && again == nil)
    }

    @Test func `a client that has filled the queue does not exclude another one`() {
        var queue = WorkerQueue<Int>(limit: 32)
        var ids: [String: UInt64] = ["many": 0, "one": 1000]
        func add(_ client: String) -> Bool {
            ids[client, default: 0] += 1
            return queue.append(0, id: ids[client, default: 0], priority: .normal, from: .identity(client))
        }
        let many = (0..<40).count { _ in add("many") }
        let one = (0..<40).count { _ in add("one") }
        #expect(many == 32 && one == 2)
        let removed = (UInt64(1)...32).compactMap { queue.remove($0) }
        #expect(removed.count == 32 && queue.count == 2)
        #expect(add("one"), "there is space again")
    }
}

import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Editor

/// Tests of the order of published edits, without sockets and clocks.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct EditQueueTests {
    private static let assets: [ObjectID] = {
        var random = SeededRandom(seed: 1)
        return (0..<8).map { ObjectID(.asset, milliseconds: Int64($0), using: &random) }
    }()

    private func edit(
        _ id: String,
        of asset: Int = 0,
        after: String? = nil,
        _ mode: AdjustmentMode = .replace,
        by publisher: String = "ann"
    ) -> QueuedEdit {
        QueuedEdit(
            key: EditKey(publisher: publisher, id: id),
            edit: PublishEdit(
                id: id,
                asset: Self.assets[asset],
                adjustments: AdjustmentList(operations: [.exposure(1)]),
                after: after,
                mode: mode
            ),
            digest: "d"
        )
    }

    private func key(_ id: String, by publisher: String = "ann") -> EditKey { EditKey(publisher: publisher, id: id) }

    @Test func `edits of one asset run one at a time, oldest first, and other assets in parallel`() {
        var queue = EditQueue()
        for (id, asset) in [("a", 0), ("b", 0), ("c", 1)] { #expect(queue.add(edit(id, of: asset), now: 0) == .queued) }
        #expect(queue.add(edit("a"), now: 0) == .known)
        #expect(queue.next()?.key.id == "a")
        #expect(queue.next()?.key.id == "c")
        #expect(queue.next() == nil)
        #expect(queue.finish(key("a"), .applied).isEmpty)
        #expect(queue.next()?.key.id == "b")
    }

    @Test func `an edit runs after its predecessor, even if it arrives first`() {
        var queue = EditQueue()
        #expect(queue.add(edit("b", of: 1, after: "a"), now: 0) == .lookUp(key("a")))
        #expect(queue.update(key("b"), predecessor: nil, now: 0) == nil)
        #expect(queue.next() == nil)
        #expect(queue.deadline(of: key("b")) == 30_000_000)
        #expect(queue.add(edit("a", of: 0), now: 1) == .queued)
        #expect(queue.deadline(of: key("b")) == nil)
        #expect(queue.next()?.key.id == "a")
        #expect(queue.next() == nil, "another asset, but still after its predecessor")
        #expect(queue.finish(key("a"), .applied).isEmpty)
        #expect(queue.next()?.key.id == "b")
    }

    @Test
    func `an already applied predecessor releases an edit, and another publisher's edit is not its predecessor`() {
        var queue = EditQueue()
        _ = queue.add(edit("a", by: "bob"), now: 0)
        #expect(queue.add(edit("b", of: 1, after: "a"), now: 0) == .lookUp(key("a")))
        #expect(queue.update(key("b"), predecessor: .applied, now: 0) == nil)
        #expect(queue.next()?.key == key("a", by: "bob"))
        #expect(queue.next()?.key == key("b"))
        // A second state of the predecessor, or one of an unknown edit, has no effect.
        #expect(queue.update(key("b"), predecessor: nil, now: 0) == nil)
        #expect(queue.update(key("z"), predecessor: .failed, now: 0) == nil)
    }

    @Test func `waiting for a missing predecessor is bounded in time and number`() {
        var queue = EditQueue(limits: .init(unknownPredecessors: 2, predecessorTimeout: 1_000_000))
        for index in 0..<3 {
            let id = "b\(index)"
            _ = queue.add(edit(id, of: index, after: "none"), now: 0)
            let failure = queue.update(key(id), predecessor: nil, now: 0)
            #expect((failure?.errorCode == .missingPredecessor) == (index == 2))
        }
        #expect(queue.expire(now: 999_999).isEmpty)
        let late = queue.expire(now: 1_000_000)
        #expect(late.map(\.edit.key.id) == ["b0", "b1"])
        #expect(late.allSatisfy { $0.errorCode == .missingPredecessor && $0.message.contains("none") })
        #expect(queue.expire(now: 2_000_000).isEmpty)
        for failure in late { #expect(queue.finish(failure.edit.key, .failed).isEmpty) }
        #expect(queue.count == 1)
    }

    @Test func `an edit whose predecessor is at another editor waits for it without limit`() {
        var queue = EditQueue(limits: .init(unknownPredecessors: 1, predecessorTimeout: 1_000_000))
        for (id, after) in [("b", "a"), ("d", "c"), ("f", "e")] {
            _ = queue.add(edit(id, of: 1, after: after), now: 0)
            #expect(queue.update(key(id), predecessor: .accepted, now: 0) == nil)
        }
        // The unknown predecessor is accepted at another editor before the waiting time ends.
        _ = queue.add(edit("h", of: 2, after: "g"), now: 0)
        #expect(queue.update(key("h"), predecessor: nil, now: 0) == nil)
        #expect(queue.note(key("g"), .accepted, now: 10).isEmpty)
        #expect(queue.expire(now: 9_000_000).isEmpty)
        #expect(queue.publishersWaiting == ["ann"] && queue.awaited(of: "ann") == ["a", "c", "e", "g"])
        #expect(queue.next() == nil)
        #expect(queue.note(key("a"), .applied, now: 10).isEmpty)
        #expect(queue.next()?.key == key("b"))
        // The other editor has released the edit, so it is applied here.
        _ = queue.add(edit("c", of: 3), now: 20)
        #expect(queue.awaited(of: "ann") == ["e", "g"])
        #expect(queue.next()?.key == key("c"))
        #expect(queue.finish(key("c"), .applied).isEmpty && queue.finish(key("b"), .applied).isEmpty)
        #expect(queue.next()?.key == key("d"))
        #expect(queue.note(key("e"), .failed, now: 10).isEmpty, "a replacing edit runs after a failure")
        #expect(queue.note(key("x"), .failed, now: 10).isEmpty)
        #expect(queue.finish(key("d"), .applied).isEmpty && queue.next()?.key == key("f"))
        #expect(queue.note(key("g"), .applied, now: 10).isEmpty && queue.next()?.key == key("h"))
        #expect(queue.publishersWaiting.isEmpty)
    }

    @Test func `after a failure a replacing edit runs, and an appending one fails with all that append to it`() {
        var queue = EditQueue()
        _ = queue.add(edit("a"), now: 0)
        _ = queue.add(edit("b", after: "a", .append), now: 0)
        _ = queue.add(edit("c", after: "b", .append), now: 0)
        _ = queue.add(edit("d", after: "c"), now: 0)
        #expect(queue.next()?.key.id == "a")
        var failures = queue.finish(key("a"), .failed)
        #expect(failures.map(\.edit.key.id) == ["b"])
        #expect(failures.first?.errorCode == .predecessorFailed)
        #expect(queue.next() == nil)
        failures = queue.finish(key("b"), .failed)
        #expect(failures.map(\.edit.key.id) == ["c"])
        #expect(queue.finish(key("c"), .failed).isEmpty)
        #expect(queue.next()?.key.id == "d")
        // The edit fails too if the catalog reports the failure.
        _ = queue.add(edit("e", of: 2, after: "x", .append), now: 0)
        #expect(queue.update(key("e"), predecessor: .failed, now: 0)?.errorCode == .predecessorFailed)
    }

    @Test func `videos and downloads delay only the later edits of their assets`() throws {
        var queue = EditQueue()
        for index in 0..<3 { _ = queue.add(edit("video \(index)", of: index), now: 0) }
        for (id, asset) in [("later", 0), ("photo", 3)] { _ = queue.add(edit(id, of: asset), now: 0) }
        for _ in 0..<3 {
            let next = queue.next(in: [.photo])
            let video = try #require(next)
            #expect(video.lane == .photo && video.moved(after: ErrorCode.busy.error("…")) == nil)
            let moved = try #require(video.moved(after: .videoInOtherLane))
            #expect(moved.lane == .video && moved.moved(after: .videoInOtherLane) == nil)
            queue.postpone(moved)
        }
        #expect(queue.next(in: [.photo])?.key == key("photo"), "not the later edit of the first video")
        #expect(queue.next(in: [.photo, .download]) == nil)
        #expect(queue.next(in: []) == nil)
        #expect(queue.next(in: [.video])?.key == key("video 0"))
        #expect(queue.finish(key("video 0"), .applied).isEmpty)
        #expect(queue.next(in: [.photo])?.key == key("later"))
        #expect(queue.metrics.ready == 2 && queue.metrics.running == 2)
    }

    @Test func `publishers take turns in each lane, except for edits of one asset`() throws {
        var queue = EditQueue()
        for index in 0..<3 { _ = queue.add(edit("a\(index)", of: index, by: "ann"), now: 0) }
        _ = queue.add(edit("b0", of: 2, by: "bob"), now: 1)
        _ = queue.add(edit("b1", of: 3, by: "bob"), now: 1)
        #expect(queue.next()?.key == key("a0"))
        #expect(queue.next()?.key == key("b1", by: "bob"), "not the later edit of the third asset")
        #expect(queue.next()?.key == key("a1"))
        #expect(queue.next()?.key == key("a2"), "bob's turn, but his edit waits for this one")
        #expect(queue.next() == nil)
        #expect(queue.finish(key("a2"), .applied).isEmpty)
        #expect(queue.next()?.key == key("b0", by: "bob"))
        // Videos of one publisher do not delay those of another, however many photos the other edits meanwhile.
        queue = EditQueue()
        for (id, publisher) in [("v0", "ann"), ("v1", "ann"), ("v2", "bob"), ("p0", "bob"), ("p1", "bob")] {
            let asset = ["v0": 0, "v1": 1, "v2": 2, "p0": 3, "p1": 4][id] ?? 0
            var edit = edit(id, of: asset, by: publisher)
            if id.hasPrefix("v") { edit.lane = .video }
            _ = queue.add(edit, now: 0)
        }
        #expect(queue.next(in: [.video])?.key == key("v0"))
        for id in ["p0", "p1"] { #expect(queue.next(in: [.photo])?.key == key(id, by: "bob")) }
        #expect(queue.next(in: [.video])?.key == key("v2", by: "bob"))
        #expect(queue.next(in: [.video])?.key == key("v1"))
    }

    @Test func `a publisher with a limited grant may fill only a part of the queue`() {
        var queue = EditQueue(limits: .init(ofLimitedPublisher: 2))
        for index in 0..<2 {
            #expect(!queue.isFull(for: "ann"))
            _ = queue.add(edit("a\(index)", of: index), now: 0)
        }
        #expect(queue.isFull(for: "ann") && !queue.isFull(for: "bob"))
        #expect(queue.next()?.key == key("a0"))
        #expect(queue.isFull(for: "ann"), "running edits count")
        #expect(queue.finish(key("a0"), .applied).isEmpty)
        #expect(!queue.isFull(for: "ann"))
    }

    @Test
    func `an edit that allows a download moves to the download lane, and a video then to the video lane`() throws {
        let required = ErrorCode.networkAccessRequired.error("…")
        var allowing = edit("a")
        #expect(allowing.moved(after: required) == nil)
        allowing.edit.isNetworkAccessAllowed = true
        let waiting = try #require(allowing.moved(after: required))
        #expect(waiting.lane == .download && waiting.mayDownload && !allowing.mayDownload)
        #expect(waiting.moved(after: required) == nil)
        #expect(waiting.moved(after: ErrorCode.networkError.error("…")) == nil)
        let video = try #require(waiting.moved(after: .videoInOtherLane))
        #expect(video.lane == .video && video.mayDownload && video.moved(after: required) == nil)
    }

    @Test func `the failure of an accepted edit is recorded although an earlier one with its content has failed`() {
        let edit = edit("a")
        #expect(edit.transactionOfFailure(isAccepted: true).transaction == nil)
        let refused = edit.transactionOfFailure(isAccepted: false)
        #expect(refused.transaction == "failed a d" && refused.digest == "d" && refused.identity == "ann")
    }

    @Test func `edits that form a cycle fail`() {
        var queue = EditQueue()
        #expect(queue.add(edit("a", after: "b"), now: 0) == .lookUp(key("b")))
        #expect(queue.add(edit("b", after: "c"), now: 0) == .lookUp(key("c")))
        guard case .fails(let failure) = queue.add(edit("c", after: "a"), now: 0) else {
            Issue.record("the cycle was not detected")
            return
        }
        #expect(failure.errorCode == .missingPredecessor)
        // An edit that follows an edit of the cycle runs when that edit has ended.
        #expect(queue.add(edit("d", after: "c"), now: 0) == .queued)
        #expect(queue.finish(key("c"), .failed).isEmpty)
        #expect(queue.next()?.key.id == "b")
        _ = queue.finish(key("b"), .applied)
        #expect(queue.next()?.key.id == "a")
        _ = queue.finish(key("a"), .applied)
        #expect(queue.next()?.key.id == "d")
    }

    @Test func `in any order of arrival, each edit runs once and after its predecessor`() {
        var random = SeededRandom(named: "edit queue")
        for _ in 0..<TestEnvironment.rounds(50) {
            var queue = EditQueue(limits: .init(unknownPredecessors: 10_000))
            var edits: [QueuedEdit] = []
            for publisher in ["ann", "bob"] {
                for asset in 0..<Self.assets.count {
                    for step in 0..<Int.random(in: 1...8, using: &random) {
                        let after = step == 0 ? nil : "\(asset)-\(step - 1)"
                        edits.append(edit("\(asset)-\(step)", of: asset, after: after, by: publisher))
                    }
                }
            }
            edits.shuffle(using: &random)
            var running: [QueuedEdit] = []
            var done: [EditKey: PublishedEditState] = [:]
            var lookUps: [(EditKey, EditKey)] = []
            var position = 0
            while done.count < edits.count {
                switch Int.random(in: 0..<5, using: &random) {
                case 4:
                    // The states of the edits at another editor become known.
                    for publisher in queue.publishersWaiting {
                        for id in queue.awaited(of: publisher) {
                            guard let state = done[key(id, by: publisher)] else { continue }
                            #expect(queue.note(key(id, by: publisher), state, now: 0).isEmpty)
                        }
                    }
                case 0 where position < edits.count:
                    let next = edits[position]
                    position += 1
                    if random.one(in: 4), next.predecessor.map({ done[$0] != nil }) ?? true {
                        // Another editor has finished it.
                        done[next.key] = .applied
                        continue
                    }
                    if case .lookUp(let predecessor) = queue.add(next, now: 0) {
                        lookUps.append((next.key, predecessor))
                    }
                case 1 where !lookUps.isEmpty:
                    let (key, predecessor) = lookUps.removeFirst()
                    #expect(queue.update(key, predecessor: done[predecessor], now: 0) == nil)
                case 2:
                    guard let next = queue.next() else { continue }
                    #expect(!running.contains { $0.edit.asset == next.edit.asset })
                    if let predecessor = next.predecessor { #expect(done[predecessor] != nil) }
                    running.append(next)
                default:
                    guard let index = running.indices.randomElement(using: &random) else { continue }
                    let finished = running.remove(at: index)
                    #expect(done[finished.key] == nil)
                    done[finished.key] = random.one(in: 3) ? .failed : .applied
                    #expect(queue.finish(finished.key, done[finished.key] ?? .applied).isEmpty)
                }
            }
            #expect(queue.count == 0)
            #expect(queue.metrics.waiting == 0)
        }
    }
}

/// Tests of the retry policy of failed edits.
@Suite(.timeLimit(.minutes(1)))
struct EditRetryPolicyTests {
    @Test func `temporary errors are retried with bounded delays`() {
        var tries = EditRetryPolicy()
        for errorCode in [
            ErrorCode.connectionLost, .busy, .notEnoughSpace, .unavailable, .deadlineExceeded, .handleExpired,
        ] {
            for _ in 0..<20 {
                guard case .again(let delay) = tries.next(after: errorCode.error("…"), isConditional: false) else {
                    Issue.record("\(errorCode) ended the edit")
                    return
                }
                #expect(delay > .zero && delay <= .seconds(2))
            }
        }
    }

    @Test func `a crash or hang is retried once, and a refusal ends the edit at once`() {
        var tries = EditRetryPolicy()
        #expect(tries.next(after: ErrorCode.workerTimeout.error("…"), isConditional: false) == .again(.zero))
        #expect(tries.next(after: ErrorCode.workerTimeout.error("…"), isConditional: false) == .fails)
        for errorCode in [ErrorCode.identifierNotFound, .invalidResource, .unsupportedFormat, .limitExceeded] {
            var tries = EditRetryPolicy()
            #expect(tries.next(after: errorCode.error("…"), isConditional: false) == .fails)
        }
    }

    @Test func `an edit that the owner of the library declines fails at once, and one that a stop cancels does not`() {
        var tries = EditRetryPolicy()
        let declined = ErrorCode.userCancelled.error("…", ["question": "q1"])
        #expect(tries.next(after: declined, isConditional: false) == .fails)
        #expect(tries.next(after: ErrorCode.userCancelled.error("…"), isConditional: false) != .fails)
    }

    @Test func `repeated conflicts end an edit, at once if it names a revision`() {
        var tries = EditRetryPolicy()
        let conflict = ErrorCode.conflict.error("…")
        #expect(tries.next(after: conflict, isConditional: true) == .fails)
        for _ in 1..<EditRetryPolicy.maxConflicts {
            #expect(tries.next(after: conflict, isConditional: false) == .again(.zero))
        }
        #expect(tries.next(after: conflict, isConditional: false) == .fails)
    }
}

import Contracts
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Editor

/// The order of published edits, without sockets and clocks.
@Suite(.timeLimit(.minutes(1)))
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

    @Test func `one edit of an asset at a time, the older one first, others beside it`() {
        var queue = EditQueue()
        for (id, asset) in [("a", 0), ("b", 0), ("c", 1)] { #expect(queue.add(edit(id, of: asset), now: 0) == .queued) }
        #expect(queue.add(edit("a"), now: 0) == .known)
        #expect(queue.next()?.key.id == "a")
        #expect(queue.next()?.key.id == "c")
        #expect(queue.next() == nil)
        #expect(queue.finish(key("a"), .applied).isEmpty)
        #expect(queue.next()?.key.id == "b")
    }

    @Test func `an edit comes after its predecessor, also where it arrives first`() {
        var queue = EditQueue()
        #expect(queue.add(edit("b", of: 1, after: "a"), now: 0) == .asks(key("a")))
        #expect(queue.answer(key("b"), predecessor: nil, now: 0) == nil)
        #expect(queue.next() == nil)
        #expect(queue.deadline(of: key("b")) == 30_000_000)
        #expect(queue.add(edit("a", of: 0), now: 1) == .queued)
        #expect(queue.deadline(of: key("b")) == nil)
        #expect(queue.next()?.key.id == "a")
        #expect(queue.next() == nil, "another asset, and still after")
        #expect(queue.finish(key("a"), .applied).isEmpty)
        #expect(queue.next()?.key.id == "b")
    }

    @Test func `a predecessor that was applied long ago lets go, another publisher's does not count`() {
        var queue = EditQueue()
        _ = queue.add(edit("a", by: "bob"), now: 0)
        #expect(queue.add(edit("b", of: 1, after: "a"), now: 0) == .asks(key("a")))
        #expect(queue.answer(key("b"), predecessor: .applied, now: 0) == nil)
        #expect(queue.next()?.key == key("a", by: "bob"))
        #expect(queue.next()?.key == key("b"))
        // A second answer, or one about an edit that is gone, says nothing.
        #expect(queue.answer(key("b"), predecessor: nil, now: 0) == nil)
        #expect(queue.answer(key("z"), predecessor: .failed, now: 0) == nil)
    }

    @Test func `nobody waits for ever for a predecessor, nor too many`() {
        var queue = EditQueue(limits: .init(strangers: 2, patience: 1_000_000))
        for index in 0..<3 {
            let id = "b\(index)"
            _ = queue.add(edit(id, of: index, after: "none"), now: 0)
            let failure = queue.answer(key(id), predecessor: nil, now: 0)
            #expect((failure?.refusal == .missingPredecessor) == (index == 2))
        }
        #expect(queue.expire(now: 999_999).isEmpty)
        let late = queue.expire(now: 1_000_000)
        #expect(late.map(\.edit.key.id) == ["b0", "b1"])
        #expect(late.allSatisfy { $0.refusal == .missingPredecessor && $0.message.contains("none") })
        #expect(queue.expire(now: 2_000_000).isEmpty)
        for failure in late { #expect(queue.finish(failure.edit.key, .failed).isEmpty) }
        #expect(queue.count == 1)
    }

    @Test func `after a failure a replacing edit goes on and an appending one fails, with all that append to it`() {
        var queue = EditQueue()
        _ = queue.add(edit("a"), now: 0)
        _ = queue.add(edit("b", after: "a", .append), now: 0)
        _ = queue.add(edit("c", after: "b", .append), now: 0)
        _ = queue.add(edit("d", after: "c"), now: 0)
        #expect(queue.next()?.key.id == "a")
        var failures = queue.finish(key("a"), .failed)
        #expect(failures.map(\.edit.key.id) == ["b"])
        #expect(failures.first?.refusal == .predecessorFailed)
        #expect(queue.next() == nil)
        failures = queue.finish(key("b"), .failed)
        #expect(failures.map(\.edit.key.id) == ["c"])
        #expect(queue.finish(key("c"), .failed).isEmpty)
        #expect(queue.next()?.key.id == "d")
        // The same where the catalog says that it failed.
        _ = queue.add(edit("e", of: 2, after: "x", .append), now: 0)
        #expect(queue.answer(key("e"), predecessor: .failed, now: 0)?.refusal == .predecessorFailed)
    }

    @Test func `edits that come after each other in a circle end`() {
        var queue = EditQueue()
        #expect(queue.add(edit("a", after: "b"), now: 0) == .asks(key("b")))
        #expect(queue.add(edit("b", after: "c"), now: 0) == .asks(key("c")))
        guard case .fails(let failure) = queue.add(edit("c", after: "a"), now: 0) else {
            Issue.record("it goes round for ever")
            return
        }
        #expect(failure.refusal == .missingPredecessor)
        // One that comes after the circle does not follow it for ever either.
        #expect(queue.add(edit("d", after: "c"), now: 0) == .queued)
        #expect(queue.finish(key("c"), .failed).isEmpty)
        #expect(queue.next()?.key.id == "b")
        _ = queue.finish(key("b"), .applied)
        #expect(queue.next()?.key.id == "a")
        _ = queue.finish(key("a"), .applied)
        #expect(queue.next()?.key.id == "d")
    }

    @Test func `whatever order edits arrive in, each is carried out once and after its predecessor`() {
        var random = SeededRandom(named: "edit queue")
        for _ in 0..<TestEnvironment.rounds(50) {
            var queue = EditQueue(limits: .init(strangers: 10_000))
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
            var asked: [(EditKey, EditKey)] = []
            var position = 0
            while done.count < edits.count {
                switch Int.random(in: 0..<4, using: &random) {
                case 0 where position < edits.count:
                    let next = edits[position]
                    position += 1
                    if case .asks(let predecessor) = queue.add(next, now: 0) { asked.append((next.key, predecessor)) }
                case 1 where !asked.isEmpty:
                    let (key, predecessor) = asked.removeFirst()
                    #expect(queue.answer(key, predecessor: done[predecessor], now: 0) == nil)
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
            #expect(queue.figures.waiting == 0)
        }
    }
}

/// What becomes of an edit that does not succeed.
@Suite(.timeLimit(.minutes(1)))
struct EditTriesTests {
    @Test func `what may pass is waited for, with pauses that stay bounded`() {
        var tries = EditTries()
        for refusal in [Refusal.connectionLost, .busy, .notEnoughSpace, .unavailable, .deadlineExceeded] {
            for _ in 0..<20 {
                guard case .again(let pause) = tries.next(after: refusal.error("…"), isConditional: false) else {
                    Issue.record("\(refusal) ends it")
                    return
                }
                #expect(pause > .zero && pause <= .seconds(2))
            }
        }
    }

    @Test func `poison is tried once more and then ends, a refusal ends at once`() {
        var tries = EditTries()
        #expect(tries.next(after: Refusal.workerTimeout.error("…"), isConditional: false) == .again(.zero))
        #expect(tries.next(after: Refusal.workerTimeout.error("…"), isConditional: false) == .fails)
        for refusal in [Refusal.identifierNotFound, .invalidResource, .unsupportedFormat, .limitExceeded] {
            var tries = EditTries()
            #expect(tries.next(after: refusal.error("…"), isConditional: false) == .fails)
        }
    }

    @Test func `others who edit the same asset win in the end, at once where the revision is named`() {
        var tries = EditTries()
        let conflict = Refusal.conflict.error("…")
        #expect(tries.next(after: conflict, isConditional: true) == .fails)
        for _ in 1..<EditTries.conflicts { #expect(tries.next(after: conflict, isConditional: false) == .again(.zero)) }
        #expect(tries.next(after: conflict, isConditional: false) == .fails)
    }
}

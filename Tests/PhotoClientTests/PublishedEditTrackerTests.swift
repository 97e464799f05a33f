import Contracts
import PhotoModel
import Testing

@testable import PhotoClient

/// The states of a publisher's open edits, without sockets or a clock.
@Suite(.timeLimit(.minutes(1)))
struct PublishedEditTrackerTests {
    private func edit(_ id: String, exposure: Double = 0.5) -> PublishEdit {
        PublishEdit(id: id, asset: assetID(1), adjustments: AdjustmentList(operations: [.exposure(exposure)]))
    }

    private func status(
        _ id: String,
        _ state: PublishedEditState,
        sequence: Int64 = 7,
        of edit: PublishEdit? = nil
    ) -> EditStatus {
        EditStatus(
            edit: PublishedEdit(id: id, asset: assetID(1), state: state),
            sequence: sequence,
            digest: edit.map(PublishedEditTracker.digest) ?? ""
        )
    }

    private func tracker(_ ids: String..., until goal: PublishGoal = .applied) -> PublishedEditTracker {
        var tracker = PublishedEditTracker(goal: goal)
        for id in ids {
            let isNew = tracker.add(edit(id), now: 0)
            #expect(isNew)
        }
        return tracker
    }

    @Test func `an id can be used again only after its edit is done`() {
        var tracker = tracker("a", "b")
        #expect(tracker.add(edit("a", exposure: 1), now: 5) == false)
        #expect(tracker.ids == ["a", "b"])
        #expect(tracker.update(status("a", .applied))?.edit.state == .applied)
        #expect(tracker.count == 1)
        #expect(tracker.add(edit("a"), now: 5) == true)
    }

    @Test func `each edit is polled with an increasing, bounded delay`() {
        var tracker = tracker("a")
        var (now, intervals): (Int64, [Int64]) = (0, [])
        for _ in 0..<8 {
            let due = tracker.nextDue ?? 0
            #expect(tracker.dequeueDue(now: due - 1, limit: 10) == [])
            #expect(tracker.dequeueDue(now: due, limit: 10) == ["a"])
            intervals.append(due - now)
            now = due
        }
        #expect(intervals[0] == PublishedEditTracker.firstInterval)
        #expect(
            zip(intervals.dropFirst(), intervals.dropFirst(2)).allSatisfy {
                $1 == min($0 * 2, PublishedEditTracker.maxInterval)
            }
        )
        #expect(intervals.last == PublishedEditTracker.maxInterval)
    }

    @Test func `edits that are due beyond the limit stay due`() {
        var tracker = tracker("a", "b", "c")
        #expect(tracker.dequeueDue(now: PublishedEditTracker.firstInterval, limit: 2) == ["a", "b"])
        #expect(tracker.nextDue == PublishedEditTracker.firstInterval)
        #expect(tracker.dequeueDue(now: PublishedEditTracker.firstInterval, limit: 2) == ["c"])
        #expect(tracker.dequeueDue(now: PublishedEditTracker.firstInterval, limit: 2) == [])
    }

    @Test func `a feed event makes its edit due at once, and an unknown id has no effect`() {
        var tracker = tracker("a", "b")
        tracker.makeDue("b", now: 10)
        tracker.makeDue("unknown", now: 10)
        #expect(tracker.dequeueDue(now: 10, limit: 10) == ["b"])
        tracker.makeAllDue(now: 20)
        #expect(tracker.dequeueDue(now: 20, limit: 10) == ["a", "b"])
        #expect(tracker.count == 2)
    }

    @Test func `an unknown edit is sent again until it is accepted`() {
        var tracker = tracker("a")
        #expect(tracker.editToResend("a") == edit("a"))
        #expect(tracker.update(status("a", .accepted, of: edit("a")))?.edit.state == .accepted)
        #expect(tracker.editToResend("a") == nil)
        #expect(tracker.editToResend("never published") == nil)
    }

    @Test func `each state is delivered once, and edits that are not open are ignored`() {
        var tracker = tracker("a")
        #expect(tracker.update(status("a", .accepted)) != nil)
        #expect(tracker.update(status("a", .accepted, sequence: 9)) == nil)
        #expect(tracker.update(status("b", .applied)) == nil)
        #expect(tracker.update(status("a", .failed))?.edit.state == .failed)
        #expect(tracker.update(status("a", .applied)) == nil)
        #expect(tracker.count == 0)
        #expect(tracker.nextDue == nil)
    }

    @Test func `with the goal accepted an accepted edit is done`() {
        var tracker = tracker("a", until: .accepted)
        #expect(tracker.update(status("a", .accepted)) != nil)
        #expect(tracker.count == 0)
    }

    @Test func `other content under the same id fails the edit with id_reused`() {
        var tracker = tracker("a")
        let reported = tracker.update(status("a", .applied, of: edit("a", exposure: 1)))
        #expect(reported?.edit.state == .failed)
        #expect(reported?.edit.errorName == "id_reused")
        #expect(tracker.count == 0)
    }
}

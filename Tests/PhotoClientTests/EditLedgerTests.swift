import Contracts
import PhotoModel
import Testing

@testable import PhotoClient

/// The states of a publisher's open edits, without sockets or a clock.
@Suite(.timeLimit(.minutes(1)))
struct EditLedgerTests {
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
            digest: edit.map(EditLedger.digest) ?? ""
        )
    }

    private func ledger(_ ids: String..., until goal: PublishGoal = .applied) -> EditLedger {
        var ledger = EditLedger(goal: goal)
        for id in ids {
            let isNew = ledger.add(edit(id), now: 0)
            #expect(isNew)
        }
        return ledger
    }

    @Test func `an id can be used again only after its edit is done`() {
        var ledger = ledger("a", "b")
        #expect(ledger.add(edit("a", exposure: 1), now: 5) == false)
        #expect(ledger.ids == ["a", "b"])
        #expect(ledger.take(status("a", .applied))?.edit.state == .applied)
        #expect(ledger.count == 1)
        #expect(ledger.add(edit("a"), now: 5) == true)
    }

    @Test func `each edit is polled with an increasing, bounded delay`() {
        var ledger = ledger("a")
        var (now, pauses): (Int64, [Int64]) = (0, [])
        for _ in 0..<8 {
            let due = ledger.nextDue ?? 0
            #expect(ledger.takeDue(now: due - 1, limit: 10) == [])
            #expect(ledger.takeDue(now: due, limit: 10) == ["a"])
            pauses.append(due - now)
            now = due
        }
        #expect(pauses[0] == EditLedger.firstPause)
        #expect(zip(pauses.dropFirst(), pauses.dropFirst(2)).allSatisfy { $1 == min($0 * 2, EditLedger.longestPause) })
        #expect(pauses.last == EditLedger.longestPause)
    }

    @Test func `edits that are due beyond the limit stay due`() {
        var ledger = ledger("a", "b", "c")
        #expect(ledger.takeDue(now: EditLedger.firstPause, limit: 2) == ["a", "b"])
        #expect(ledger.nextDue == EditLedger.firstPause)
        #expect(ledger.takeDue(now: EditLedger.firstPause, limit: 2) == ["c"])
        #expect(ledger.takeDue(now: EditLedger.firstPause, limit: 2) == [])
    }

    @Test func `a feed event makes its edit due at once, and an unknown id has no effect`() {
        var ledger = ledger("a", "b")
        ledger.heard(of: "b", now: 10)
        ledger.heard(of: "somebody's", now: 10)
        #expect(ledger.takeDue(now: 10, limit: 10) == ["b"])
        ledger.heardOfAll(now: 20)
        #expect(ledger.takeDue(now: 20, limit: 10) == ["a", "b"])
        #expect(ledger.count == 2)
    }

    @Test func `an unknown edit is sent again until it is accepted`() {
        var ledger = ledger("a")
        #expect(ledger.unknown("a") == edit("a"))
        #expect(ledger.take(status("a", .accepted, of: edit("a")))?.edit.state == .accepted)
        #expect(ledger.unknown("a") == nil)
        #expect(ledger.unknown("never published") == nil)
    }

    @Test func `each state is delivered once, and edits that are not open are ignored`() {
        var ledger = ledger("a")
        #expect(ledger.take(status("a", .accepted)) != nil)
        #expect(ledger.take(status("a", .accepted, sequence: 9)) == nil)
        #expect(ledger.take(status("b", .applied)) == nil)
        #expect(ledger.take(status("a", .failed))?.edit.state == .failed)
        #expect(ledger.take(status("a", .applied)) == nil)
        #expect(ledger.count == 0)
        #expect(ledger.nextDue == nil)
    }

    @Test func `with the goal accepted an accepted edit is done`() {
        var ledger = ledger("a", until: .accepted)
        #expect(ledger.take(status("a", .accepted)) != nil)
        #expect(ledger.count == 0)
    }

    @Test func `other content under the same id fails the edit with id_reused`() {
        var ledger = ledger("a")
        let told = ledger.take(status("a", .applied, of: edit("a", exposure: 1)))
        #expect(told?.edit.state == .failed)
        #expect(told?.edit.errorName == "id_reused")
        #expect(ledger.count == 0)
    }
}

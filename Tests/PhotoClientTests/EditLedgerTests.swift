import Contracts
import PhotoModel
import Testing

@testable import PhotoClient

/// What a publisher knows of its edits, without sockets and without a clock.
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

    @Test func `an id is taken once while its edit is open, and free when it is done`() {
        var ledger = ledger("a", "b")
        #expect(ledger.add(edit("a", exposure: 1), now: 5) == false)
        #expect(ledger.ids == ["a", "b"])
        #expect(ledger.take(status("a", .applied))?.edit.state == .applied)
        #expect(ledger.count == 1)
        #expect(ledger.add(edit("a"), now: 5) == true)
    }

    @Test func `each is asked for after a pause that grows to a bound, and never before`() {
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

    @Test func `what is due beyond a page stays due`() {
        var ledger = ledger("a", "b", "c")
        #expect(ledger.takeDue(now: EditLedger.firstPause, limit: 2) == ["a", "b"])
        #expect(ledger.nextDue == EditLedger.firstPause)
        #expect(ledger.takeDue(now: EditLedger.firstPause, limit: 2) == ["c"])
        #expect(ledger.takeDue(now: EditLedger.firstPause, limit: 2) == [])
    }

    @Test func `a word on the feed makes it due at once, and an unknown name nothing`() {
        var ledger = ledger("a", "b")
        ledger.heard(of: "b", now: 10)
        ledger.heard(of: "somebody's", now: 10)
        #expect(ledger.takeDue(now: 10, limit: 10) == ["b"])
        ledger.heardOfAll(now: 20)
        #expect(ledger.takeDue(now: 20, limit: 10) == ["a", "b"])
        #expect(ledger.count == 2)
    }

    @Test func `it is sent again until it is accepted, and not after`() {
        var ledger = ledger("a")
        #expect(ledger.unknown("a") == edit("a"))
        #expect(ledger.take(status("a", .accepted, of: edit("a")))?.edit.state == .accepted)
        #expect(ledger.unknown("a") == nil)
        #expect(ledger.unknown("never published") == nil)
    }

    @Test func `each state is told once, and what is not followed not at all`() {
        var ledger = ledger("a")
        #expect(ledger.take(status("a", .accepted)) != nil)
        #expect(ledger.take(status("a", .accepted, sequence: 9)) == nil)
        #expect(ledger.take(status("b", .applied)) == nil)
        #expect(ledger.take(status("a", .failed))?.edit.state == .failed)
        #expect(ledger.take(status("a", .applied)) == nil)
        #expect(ledger.count == 0)
        #expect(ledger.nextDue == nil)
    }

    @Test func `where only acceptance is waited for it is the end`() {
        var ledger = ledger("a", until: .accepted)
        #expect(ledger.take(status("a", .accepted)) != nil)
        #expect(ledger.count == 0)
    }

    @Test func `another content under the id is a failure of this edit by name`() {
        var ledger = ledger("a")
        let told = ledger.take(status("a", .applied, of: edit("a", exposure: 1)))
        #expect(told?.edit.state == .failed)
        #expect(told?.edit.errorName == "id_reused")
        #expect(ledger.count == 0)
    }
}

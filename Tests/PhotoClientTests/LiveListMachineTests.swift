import Contracts
import PhotoModel
import TestSupport
import Testing

@testable import PhotoClient

/// The state machine of live lists, without sockets, with message loss, restarts and errors.
@Suite(.timeLimit(.minutes(1)))
struct LiveListMachineTests {
    private static let library = String(repeating: "ab", count: 16)
    private static let ids = (0..<20).map { RandomEntities.id(.asset, $0) }

    private func token(_ sequence: Int64, _ library: String = library) -> ChangeToken {
        ChangeToken(library: library, sequence: sequence)
    }

    private func list(_ numbers: Int...) -> [ObjectID] { numbers.map { Self.ids[$0] } }

    private func head(_ sequence: Int64, _ instance: String = "one", library: String = library) -> FeedHead {
        FeedHead(sequence: sequence, oldest: 0, library: library, instance: instance)
    }

    private func answer(_ sequence: Int64, _ details: ChangeDetails? = nil) -> FetchDetailsResult {
        var result = FetchDetailsResult(observation: "o", token: token(sequence), count: 0)
        result.details = details
        return result
    }

    /// Returns a state machine at sequence 1 that waits for live messages.
    private func watching(_ ids: [ObjectID]) -> LiveListMachine {
        var machine = LiveListMachine()
        #expect(machine.want == .list)
        let first = machine.listed(ids, at: token(1))
        #expect(first.ids == ids)
        #expect(machine.want == .observe(since: token(1)))
        _ = machine.observed(FetchObserve.Result(details: answer(1), topic: "fetch.o", instance: "one"))
        #expect(machine.want == .subscribe("fetch.o"))
        machine.didSubscribe(to: "fetch.o")
        #expect(machine.want == .details(observation: "o", since: token(1)))
        let nothing = machine.detailed(answer(1))
        #expect(nothing == nil)
        #expect(machine.want == .live)
        return machine
    }

    private func message(_ machine: LiveListMachine, _ after: [ObjectID], _ sequence: Int64, _ previous: Int64)
        -> LiveListMachine.Message
    {
        let details = ChangeDetails.between(machine.ids, after)
        return LiveListMachine.Message(token: token(sequence), previous: previous, details: details)
    }

    @Test(.spec("S-70", "P-03"))
    func `changes are applied, and earlier ones are ignored`() {
        var machine = watching(list(1, 2, 3))
        let event = machine.live(message(machine, list(2, 3, 1), 2, 1), topic: "fetch.o")
        #expect(event?.ids == list(2, 3, 1))
        let old = machine.live(message(machine, list(9), 2, 1), topic: "fetch.o")
        #expect(old == nil)
        #expect(machine.ids == list(2, 3, 1) && machine.token == token(2))
    }

    @Test func `a gap, a truncated message or five seconds behind head cause a request of details`() {
        var machine = watching(list(1))
        _ = machine.live(message(machine, list(1, 2), 5, 4), topic: "fetch.o")
        #expect(machine.want == .details(observation: "o", since: token(1)))
        _ = machine.detailed(answer(5, ChangeDetails.between(list(1), list(2, 1))))
        #expect(machine.ids == list(2, 1) && machine.want == .live)
        _ = machine.live(.init(token: token(6), previous: 5, details: nil), topic: "fetch.o")
        #expect(machine.want == .details(observation: "o", since: token(5)))
        _ = machine.detailed(answer(6))
        machine.head(head(7), now: 0)
        machine.head(head(7), now: LiveListMachine.confirmAfter - 1)
        #expect(machine.want == .live)
        machine.head(head(8), now: LiveListMachine.confirmAfter)
        #expect(machine.want == .details(observation: "o", since: token(6)))
    }

    @Test func `after a restart of the broker the list is observed again, with another history it is fetched again`() {
        var machine = watching(list(1))
        machine.head(head(4, "two"), now: 0)
        #expect(machine.want == .observe(since: token(1)))
        let details = answer(4, ChangeDetails.between(list(1), list(3, 1)))
        _ = machine.observed(FetchObserve.Result(details: details, topic: "fetch.o", instance: "two"))
        #expect(machine.ids == list(3, 1) && machine.want == .live)
        machine.head(head(4, "two", library: String(repeating: "cd", count: 16)), now: 0)
        #expect(machine.want == .list)
    }

    @Test(.spec("S-69", "P-30"))
    func `an expired observation or token is renewed, and a whole list replaces the old one`() {
        var machine = watching(list(1))
        let knowsGone = machine.refused(.handleExpired)
        #expect(knowsGone && machine.want == .observe(since: token(1)))
        let knowsExpired = machine.refused(.tokenExpired)
        #expect(knowsExpired && machine.want == .list)
        let knowsLimit = machine.refused(.limitExceeded)
        #expect(!knowsLimit)
        machine = watching(list(1))
        var whole = ChangeDetails(countBefore: 1, countAfter: 2)
        whole.hasIncrementalChanges = false
        var result = answer(3, whole)
        result.ids = list(5, 6)
        let replaced = machine.detailed(result)
        #expect(replaced == .list(list(5, 6), token(3)))
        result.ids = nil
        let unknown = machine.detailed(result)
        #expect(unknown == nil)
        #expect(machine.want == .list)
    }

    @Test func `details that do not match the list cause a new fetch`() {
        var machine = watching(list(1, 2))
        let details = ChangeDetails.between(list(7, 8), list(8))
        let event = machine.live(.init(token: token(2), previous: 1, details: details), topic: "fetch.o")
        #expect(event == nil)
        #expect(machine.want == .list)
    }
}

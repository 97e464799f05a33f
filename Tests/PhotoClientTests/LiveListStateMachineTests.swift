import Contracts
import PhotoModel
import TestSupport
import Testing

@testable import PhotoClient

/// The state machine of live lists, without sockets, with message loss, restarts and errors.
@Suite(.timeLimit(.minutes(1)))
struct LiveListStateMachineTests {
    private static let library = String(repeating: "ab", count: 16)
    private static let ids = (0..<20).map { RandomEntities.id(.asset, $0) }

    private func token(_ sequence: Int64, _ library: String = library) -> ChangeToken {
        ChangeToken(library: library, sequence: sequence)
    }

    private func list(_ numbers: Int...) -> [ObjectID] { numbers.map { Self.ids[$0] } }

    private func head(_ sequence: Int64, _ instance: String = "one", library: String = library) -> FeedHead {
        FeedHead(sequence: sequence, oldest: 0, library: library, instance: instance)
    }

    private func detailsResult(_ sequence: Int64, _ details: ChangeDetails? = nil) -> FetchDetailsResult {
        var result = FetchDetailsResult(observation: "o", token: token(sequence), count: 0)
        result.details = details
        return result
    }

    /// Returns a state machine at sequence 1 that waits for live messages.
    private func live(_ ids: [ObjectID]) -> LiveListStateMachine {
        var state = LiveListStateMachine()
        #expect(state.nextAction == .list)
        let first = state.setList(ids, at: token(1))
        #expect(first.ids == ids)
        #expect(state.nextAction == .observe(since: token(1)))
        _ = state.didObserve(FetchObserve.Result(details: detailsResult(1), topic: "fetch.o", instance: "one"))
        #expect(state.nextAction == .subscribe("fetch.o"))
        state.didSubscribe(to: "fetch.o")
        #expect(state.nextAction == .details(observation: "o", since: token(1)))
        let nothing = state.handleDetails(detailsResult(1))
        #expect(nothing == nil)
        #expect(state.nextAction == .live)
        return state
    }

    private func message(_ state: LiveListStateMachine, _ after: [ObjectID], _ sequence: Int64, _ previous: Int64)
        -> LiveListStateMachine.Message
    {
        let details = ChangeDetails.between(state.ids, after)
        return LiveListStateMachine.Message(token: token(sequence), previous: previous, details: details)
    }

    @Test(.spec("S-70", "P-03"))
    func `changes are applied, and earlier ones are ignored`() {
        var state = live(list(1, 2, 3))
        let event = state.handleLive(message(state, list(2, 3, 1), 2, 1), topic: "fetch.o")
        #expect(event?.ids == list(2, 3, 1))
        let old = state.handleLive(message(state, list(9), 2, 1), topic: "fetch.o")
        #expect(old == nil)
        #expect(state.ids == list(2, 3, 1) && state.token == token(2))
    }

    @Test func `a gap, a truncated message or five seconds behind head cause a request of details`() {
        var state = live(list(1))
        _ = state.handleLive(message(state, list(1, 2), 5, 4), topic: "fetch.o")
        #expect(state.nextAction == .details(observation: "o", since: token(1)))
        _ = state.handleDetails(detailsResult(5, ChangeDetails.between(list(1), list(2, 1))))
        #expect(state.ids == list(2, 1) && state.nextAction == .live)
        _ = state.handleLive(.init(token: token(6), previous: 5, details: nil), topic: "fetch.o")
        #expect(state.nextAction == .details(observation: "o", since: token(5)))
        _ = state.handleDetails(detailsResult(6))
        state.handleHead(head(7), now: 0)
        state.handleHead(head(7), now: LiveListStateMachine.confirmAfter - 1)
        #expect(state.nextAction == .live)
        state.handleHead(head(8), now: LiveListStateMachine.confirmAfter)
        #expect(state.nextAction == .details(observation: "o", since: token(6)))
    }

    @Test func `after a restart of the broker the list is observed again, with another history it is fetched again`() {
        var state = live(list(1))
        state.handleHead(head(4, "two"), now: 0)
        #expect(state.nextAction == .observe(since: token(1)))
        let details = detailsResult(4, ChangeDetails.between(list(1), list(3, 1)))
        _ = state.didObserve(FetchObserve.Result(details: details, topic: "fetch.o", instance: "two"))
        #expect(state.ids == list(3, 1) && state.nextAction == .live)
        state.handleHead(head(4, "two", library: String(repeating: "cd", count: 16)), now: 0)
        #expect(state.nextAction == .list)
    }

    @Test(.spec("S-69", "P-30"))
    func `an expired observation or token is renewed, and a whole list replaces the old one`() {
        var state = live(list(1))
        let continuesAfterHandle = state.recover(from: .handleExpired)
        #expect(continuesAfterHandle && state.nextAction == .observe(since: token(1)))
        let continuesAfterToken = state.recover(from: .tokenExpired)
        #expect(continuesAfterToken && state.nextAction == .list)
        let continuesAfterLimit = state.recover(from: .limitExceeded)
        #expect(!continuesAfterLimit)
        state = live(list(1))
        var whole = ChangeDetails(countBefore: 1, countAfter: 2)
        whole.hasIncrementalChanges = false
        var result = detailsResult(3, whole)
        result.ids = list(5, 6)
        let replaced = state.handleDetails(result)
        #expect(replaced == .list(list(5, 6), token(3)))
        result.ids = nil
        let unknown = state.handleDetails(result)
        #expect(unknown == nil)
        #expect(state.nextAction == .list)
    }

    @Test func `details that do not match the list cause a new fetch`() {
        var state = live(list(1, 2))
        let details = ChangeDetails.between(list(7, 8), list(8))
        let event = state.handleLive(.init(token: token(2), previous: 1, details: details), topic: "fetch.o")
        #expect(event == nil)
        #expect(state.nextAction == .list)
    }
}

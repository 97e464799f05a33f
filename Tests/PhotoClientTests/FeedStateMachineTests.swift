import Contracts
import PhotoModel
import Testing

@testable import PhotoClient

@Suite(.timeLimit(.minutes(5)))
struct FeedStateMachineTests {
    private func change(_ sequence: Int64, after previous: Int64? = nil, library: String = testLibrary) -> LiveChange {
        LiveChange(
            token: token(sequence, library: library),
            previous: previous ?? sequence - 1,
            record: record(sequence, library: library, touching: [assetID(1)])
        )
    }

    private func head(_ sequence: Int64, library: String = testLibrary, instance: String = "i1") -> FeedHead {
        FeedHead(sequence: sequence, oldest: 0, library: library, instance: instance)
    }

    private func page(_ sequences: ClosedRange<Int64>, head: Int64) -> FeedStateMachine.Page {
        .init(
            records: sequences.map { record($0, touching: [assetID(1)]) },
            token: token(sequences.upperBound),
            head: token(head)
        )
    }

    private func empty(upTo sequence: Int64) -> FeedStateMachine.Page {
        .init(records: [], token: token(sequence), head: token(sequence))
    }

    private func sequences(_ events: [FeedEvent]) -> [Int64] {
        events.compactMap { if case .change(let record) = $0 { record.sequence } else { nil } }
    }

    /// Returns a state machine that has caught up.
    private func live(at sequence: Int64, topics: [String] = []) -> FeedStateMachine {
        var state = FeedStateMachine(since: token(sequence), topics: topics)
        _ = state.handlePage(empty(upTo: sequence))
        return state
    }

    @Test func `without a token the feed begins at its head`() {
        var state = FeedStateMachine(since: nil)
        #expect(state.nextAction == .head)
        #expect(state.handleLive(change(5)) == nil)
        #expect(state.begin(at: head(7)) == .caughtUp(token(7)))
        #expect(state.nextAction == .live)
        #expect(state.handleLive(change(7)) == nil)
        #expect(state.handleLive(change(8)) == .change(record(8, touching: [assetID(1)])))
    }

    @Test func `with a token the feed requests history page by page, then live messages`() {
        var state = FeedStateMachine(since: token(2))
        #expect(state.nextAction == .page(after: token(2)))
        #expect(sequences(state.handlePage(page(3...4, head: 6))) == [3, 4])
        #expect(state.nextAction == .page(after: token(4)))
        let last = state.handlePage(page(5...6, head: 6))
        #expect(sequences(last) == [5, 6])
        #expect(last.last == .caughtUp(token(6)))
        #expect(state.nextAction == .live)
    }

    @Test func `a live message already received from history is dropped`() {
        var state = live(at: 6)
        #expect(state.handleLive(change(5)) == nil)
        #expect(state.handleLive(change(6)) == nil)
        #expect(state.nextAction == .live)
        #expect(state.gaps == 0)
    }

    @Test func `a gap is filled from history, and waiting live messages are not delivered twice`() {
        var state = live(at: 6)
        #expect(state.handleLive(change(9)) == nil)
        #expect(state.nextAction == .page(after: token(6)))
        #expect(sequences(state.handlePage(page(7...9, head: 9))) == [7, 8, 9])
        #expect(state.handleLive(change(9)) == nil)
        #expect(state.handleLive(change(10)) != nil)
        #expect(state.gaps == 1)
    }

    @Test func `the loss of the last message is detected by a head message`() {
        var state = live(at: 6)
        state.handleHead(head(6), now: 0)
        #expect(state.nextAction == .live)
        state.handleHead(head(7), now: 1)
        #expect(state.nextAction == .page(after: token(6)))
    }

    @Test func `a truncated message causes a history request`() {
        var state = live(at: 6)
        #expect(state.handleLive(LiveChange(token: token(7), previous: 6, record: nil)) == nil)
        #expect(state.nextAction == .page(after: token(6)))
    }

    @Test func `a message that cannot be decoded causes a history request`() {
        var state = live(at: 6)
        state.handleUndecodable()
        #expect(state.nextAction == .page(after: token(6)))
    }

    @Test func `a topic's message continues the position if the topic carried nothing in between`() {
        var state = live(at: 6, topics: [FeedTopic.object(assetID(1))])
        #expect(state.handleLive(change(20, after: 3)) != nil)
        #expect(state.handleLive(change(30, after: 25)) == nil)
        #expect(state.nextAction == .page(after: token(20)))
    }

    @Test func `a filtered subscriber that stays behind confirms with history, and an empty page advances it`() {
        var state = live(at: 6, topics: [FeedTopic.object(assetID(1))])
        state.handleHead(head(9), now: 1_000_000)
        state.handleHead(head(12), now: 5_900_000)
        #expect(state.nextAction == .live)
        state.handleHead(head(12), now: 6_000_000)
        #expect(state.nextAction == .page(after: token(6)))
        #expect(state.handlePage(empty(upTo: 12)) == [.caughtUp(token(12))])
        state.handleHead(head(12), now: 20_000_000)
        #expect(state.nextAction == .live)
        #expect(state.gaps == 0)
    }

    @Test func `a filtered subscriber requests history at once after a restart of the broker`() {
        var state = live(at: 6, topics: [FeedTopic.object(assetID(1))])
        state.handleHead(head(6), now: 0)
        state.handleHead(head(8, instance: "i2"), now: 1)
        #expect(state.nextAction == .page(after: token(6)))
    }

    @Test func `with several topics records are delivered from history only`() {
        let topics = [FeedTopic.object(assetID(1)), FeedTopic.object(assetID(2))]
        var state = live(at: 6, topics: topics)
        #expect(state.handleLive(change(8, after: 2)) == nil)
        #expect(state.nextAction == .page(after: token(6)))
        let records = [
            record(7, touching: [assetID(2), assetID(9)]), record(8, touching: [assetID(1)]),
            record(9, touching: [assetID(9)]),
        ]
        let events = state.handlePage(.init(records: records, token: token(9), head: token(9)))
        #expect(
            events == [
                .change(record(7, touching: [assetID(2)])), .change(record(8, touching: [assetID(1)])),
                .caughtUp(token(9)),
            ]
        )
    }

    @Test func `an expired token is delivered as an event, and the feed continues at head`() {
        var state = FeedStateMachine(since: token(2))
        #expect(
            state.handleExpired(head: token(50), oldest: token(40)) == .expired(head: token(50), oldest: token(40))
        )
        #expect(state.nextAction == .live)
        #expect(state.handleLive(change(51)) != nil)
    }

    @Test func `a message of another history causes a request that detects the end of the current one`() {
        let other = String(repeating: "cd", count: 16)
        var state = live(at: 6)
        state.handleHead(head(3, library: other), now: 0)
        #expect(state.nextAction == .page(after: token(6)))
        let end = state.handleExpired(head: token(3, library: other), oldest: token(0, library: other))
        #expect(end == .expired(head: token(3, library: other), oldest: token(0, library: other)))
        // Late messages of the old history are ignored.
        #expect(state.handleLive(change(7)) == nil)
        #expect(state.nextAction == .live)
        #expect(state.handleLive(change(4, library: other)) != nil)
    }

    @Test func `history is requested if no message arrives`() {
        var state = live(at: 6)
        state.handleSilence()
        #expect(state.nextAction == .page(after: token(6)))
        #expect(sequences(state.handlePage(page(7...8, head: 8))) == [7, 8])
        #expect(state.nextAction == .live && state.gaps == 0)
    }

    @Test func `after a page without progress the next request waits for a head message`() {
        var state = FeedStateMachine(since: token(6))
        #expect(state.handlePage(.init(records: [], token: token(6), head: token(9))) == [])
        #expect(state.nextAction == .live)
        state.handleHead(head(9), now: 0)
        #expect(state.nextAction == .page(after: token(6)))
    }
}

import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Editor

extension EditorWorkerTests {
    /// Tests of how accepted edits that cannot be applied end.
    @Suite(.timeLimit(.minutes(2)))
    struct PublishedEditTests {
        @Test func `an accepted edit stays until its failure is recorded, and its successor waits for it`() async throws
        {
            let catalog = try AcceptedEdits(of: ["1", "2"])
            let fault = ErrorCode.internalError.error("the disk failed")
            catalog.state.withLock { $0.refusals = [fault, fault, fault, fault] }
            try await EditorFixture.open(handler: catalog) { _ in
                await catalog.state.wait { $0.states["2"] == .failed }
                let end = catalog.state.current
                #expect(end.attempts == ["1", "1", "1", "1", "1", "2"])
                #expect(end.errors == ["1": "identifier_not_found", "2": "predecessor_failed"])
            }
        }

        @Test(arguments: [.applied, .failed, nil] as [PublishedEditState?])
        func `an accepted edit whose failure is refused ends with the state in the catalog`(state: PublishedEditState?)
            async throws
        {
            let catalog = try AcceptedEdits(of: ["1", "2"])
            catalog.state.withLock {
                $0.refusals = [ErrorCode.identifierNotFound.error("no edit 1 was accepted")]
                $0.stateAfterRefusal = state
            }
            try await EditorFixture.open(handler: catalog) { _ in
                await catalog.state.wait { $0.states["2"] == .failed }
                let end = catalog.state.current
                #expect(end.attempts == ["1", "2"])
                #expect(end.errors == ["2": state == .applied ? "identifier_not_found" : "predecessor_failed"])
            }
        }

        @Test func `an editor stops while the failure of an edit cannot be recorded`() async throws {
            let catalog = try AcceptedEdits(of: ["1", "2"])
            catalog.state.withLock {
                $0.refusals = Array(repeating: ErrorCode.internalError.error("the disk failed"), count: 1000)
            }
            try await EditorFixture.open(handler: catalog) { _ in
                await catalog.state.wait { $0.attempts.count == 3 }
            }
            let end = catalog.state.current
            #expect(end.states == ["1": .accepted, "2": .accepted], "the next start tries them again")
            #expect(end.attempts.allSatisfy { $0 == "1" })
        }

        @Test func `an edit does not fail while the catalog cannot report the state of its predecessor`() async throws {
            // Another editor has applied the first edit, and the catalog cannot be asked for longer than the timeout.
            let catalog = try AcceptedEdits(of: ["2"])
            catalog.state.withLock {
                $0.states["1"] = .applied
                $0.outage = .milliseconds(1500)
            }
            try await EditorFixture.open(handler: catalog) {
                $0.predecessorTimeout = 1
            } _: { _ in
                await catalog.state.wait { $0.states["2"] == .failed }
                #expect(catalog.state.current.errors == ["2": "identifier_not_found"])
            }
        }
    }
}

/// A catalog with accepted edits of a missing asset, each after the edit with the previous number.
private final class AcceptedEdits: RequestHandler {
    struct State {
        /// The edits that are known.
        var states: [String: PublishedEditState] = [:]
        /// The errors of the next attempts to record a failure.
        var refusals: [RPCError] = []
        /// The state of an edit after its failure was refused. Outer nil keeps the state, inner nil makes it unknown.
        var stateAfterRefusal: PublishedEditState??
        /// The ids of the edits whose failure was to be recorded.
        var attempts: [String] = []
        /// The names of the errors that were recorded.
        var errors: [String: String] = [:]
        /// The time for which states of edits that are not pending cannot be read, from the first attempt.
        var outage = Duration.zero
        var outageEnd: ContinuousClock.Instant?
    }

    let state: AwaitableValue<State>
    private let pending: [PendingEdit]
    private let asset: ObjectID
    private static let token = ChangeToken(library: String(repeating: "1", count: 32), sequence: 9)

    init(of ids: [String]) throws {
        var random = SeededRandom(seed: 1)
        let asset = ObjectID(.asset, milliseconds: 1, using: &random)
        self.asset = asset
        pending = try ids.map { id in
            let number = try #require(Int(id))
            let edit = PublishEdit(
                id: id,
                asset: asset,
                adjustments: AdjustmentList(operations: [.exposure(1)]),
                after: number == 1 ? nil : String(number - 1),
                mode: .append
            )
            return PendingEdit(
                publisher: "uid:1000",
                sequence: Int64(number),
                accepted: ChangeRequest.AcceptEdit(
                    id: id,
                    asset: asset,
                    predecessor: edit.predecessor,
                    digest: "d",
                    content: edit.json
                )
            )
        }
        state = AwaitableValue(
            State(states: Dictionary(uniqueKeysWithValues: ids.map { ($0, PublishedEditState.accepted) }))
        )
    }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        switch try CatalogRequest(method: request.method, params: request.params) {
        case .editsPending(let request) where request.wait == 0:
            return Reply(EditsPending.Result(edits: pending, next: nil).json)
        case .editsStatus(let request): return Reply(try states(of: request.ids).json)
        case .perform(let changes):
            for case .failEdit(let failure) in changes.requests { try record(failure) }
            return Reply(PerformChanges.Result(token: Self.token, isChanged: true).json)
        default: throw ErrorCode.identifierNotFound.error("this catalog has only edits")
        }
    }

    private func states(of ids: [String]) throws(RPCError) -> EditsStatus.Result {
        let (states, isUnavailable) = state.withLock { state in
            guard ids.contains(where: { id in !pending.contains { $0.accepted.id == id } }) else {
                return (state.states, false)
            }
            let now = ContinuousClock.now
            let end = state.outageEnd ?? now + state.outage
            state.outageEnd = end
            return (state.states, now < end)
        }
        guard !isUnavailable else { throw ErrorCode.internalError.error("the disk failed") }
        var result = EditsStatus.Result(edits: [], unknown: [])
        for id in ids {
            if let state = states[id] {
                let edit = PublishedEdit(id: id, asset: asset, state: state)
                result.edits.append(EditStatus(edit: edit, sequence: 1, digest: "d"))
            } else {
                result.unknown.append(id)
            }
        }
        return result
    }

    private func record(_ failure: ChangeRequest.FailEdit) throws(RPCError) {
        let refusal = state.withLock { state -> RPCError? in
            state.attempts.append(failure.id)
            guard state.refusals.isEmpty else {
                if let next = state.stateAfterRefusal { state.states[failure.id] = next }
                return state.refusals.removeFirst()
            }
            state.states[failure.id] = .failed
            state.errors[failure.id] = failure.errorName
            return nil
        }
        if let refusal { throw refusal }
    }
}

import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel
import Synchronization

/// The editors that apply accepted edits, if there are several: an edit belongs to the editor that has accepted or
/// claimed it, until it is finished or the editor has been disconnected for some time. Then another editor may claim
/// it.
///
/// In memory only: after a restart of the catalog, every accepted edit can be claimed. An edit that two editors apply
/// is committed once, regardless of the claim; a claim saves the work of rendering it twice.
final class EditClaims: Sendable {
    /// The name of a published edit: its publisher, and the id that the publisher gave it.
    struct Key: Sendable, Hashable {
        var publisher: String
        var id: String
    }

    private struct Claim {
        var editor: String
        var connection: ConnectionID
    }

    private struct State {
        var claims: [Key: Claim] = [:]
        /// The names of the editors by their connections.
        var editors: [ConnectionID: String] = [:]
        /// Editors that have edits and are not connected, with the time at which their connection ended.
        var disconnected: [String: Int64] = [:]
        /// Signalled when a connection of an editor with edits ends.
        var changed = OneTimeEvent()
    }

    /// The time in microseconds after which the edits of an editor that has lost its connection may be claimed: an
    /// editor that still runs connects again within it.
    static let reconnectionTime: Int64 = 5_000_000

    private let clock: MonotonicClock
    private let state = Mutex(State())

    init(clock: MonotonicClock = .system) { self.clock = clock }

    /// The number of edits that belong to an editor.
    var count: Int { state.withLock { $0.claims.count } }

    // MARK: Editors

    /// Records the name of the editor that a connection belongs to.
    func registerEditor(_ editor: String, _ connection: ConnectionID) {
        state.withLock { state in
            state.editors[connection] = editor
            state.disconnected[editor] = nil
        }
    }

    /// Records that a connection has ended; connections that are not of an editor have no effect.
    func connectionEnded(_ connection: ConnectionID) {
        let changed = state.withLock { state -> OneTimeEvent? in
            guard let editor = state.editors.removeValue(forKey: connection),
                state.claims.values.contains(where: { $0.editor == editor })
            else { return nil }
            // Another connection with the same name may claim the edits at once.
            if !state.editors.values.contains(editor) { state.disconnected[editor] = clock.nowMicroseconds() }
            defer { state.changed = OneTimeEvent() }
            return state.changed
        }
        changed?.signal()
    }

    // MARK: Edits

    /// Performs a transaction of an editor on behalf of a publisher. Published edits that it accepts belong to this
    /// editor, those that it finishes to none.
    ///
    /// - Parameter perform: returns the encoded result, with `isChanged`
    func claimEdits(
        of call: PerformChanges,
        _ publisher: String,
        _ connection: ConnectionID,
        perform: () async throws -> Bytes
    ) async throws -> Bytes {
        // Before the commit, so that no other editor claims them in between.
        let accepted = claimAccepted(by: call, publisher, connection)
        do {
            let reply = try await perform()
            let isChanged = try JSON(parsing: reply)["isChanged"] == true
            // An edit that is sent again may be finished already.
            endClaims(of: call, publisher, unaccepted: isChanged ? [] : accepted)
            return reply
        } catch {
            endClaims(of: call, publisher, unaccepted: accepted, isFailed: true)
            throw error
        }
    }

    /// Claims the edits that a transaction accepts, and returns those that had no editor.
    private func claimAccepted(by call: PerformChanges, _ publisher: String, _ connection: ConnectionID) -> [Key] {
        state.withLock { state in
            guard let editor = state.editors[connection] else { return [] }
            var added: [Key] = []
            for case .acceptEdit(let edit) in call.requests {
                let key = Key(publisher: publisher, id: edit.id)
                guard state.claims[key] == nil else { continue }
                state.claims[key] = Claim(editor: editor, connection: connection)
                added.append(key)
            }
            return added
        }
    }

    /// Ends the claims of edits that a transaction has not accepted, and of those that it has finished.
    private func endClaims(of call: PerformChanges, _ publisher: String, unaccepted: [Key], isFailed: Bool = false) {
        let finished = isFailed ? [] : call.requests.compactMap(\.finishedEdit)
        guard !(finished.isEmpty && unaccepted.isEmpty) else { return }
        state.withLock { state in
            for key in unaccepted { state.claims[key] = nil }
            for id in finished { state.claims[Key(publisher: publisher, id: id)] = nil }
        }
    }

    /// Assigns to an editor the given edits that no other editor has, and returns them.
    func claim(_ edits: [PendingEdit], for editor: String, _ connection: ConnectionID) -> [PendingEdit] {
        let now = clock.nowMicroseconds()
        return state.withLock { state in
            // The connection may have ended meanwhile; then its claims would never end.
            guard state.editors[connection] == editor else { return [] }
            let free = edits.filter { edit in
                guard let claim = state.claims[edit.key] else { return true }
                // The editor had the edit before its restart, unless another editor of the same name is connected and
                // has it.
                if claim.editor == editor { return state.editors[claim.connection] == nil }
                return state.disconnected[claim.editor].map { now - $0 >= Self.reconnectionTime } ?? false
            }
            for edit in free { state.claims[edit.key] = Claim(editor: editor, connection: connection) }
            if !state.disconnected.isEmpty {
                let owners = Set(state.claims.values.lazy.map(\.editor))
                state.disconnected = state.disconnected.filter { owners.contains($0.key) }
            }
            return free
        }
    }

    // MARK: Waiting

    /// The event that is signalled when a connection of an editor next ends.
    var nextChange: OneTimeEvent { state.withLock { $0.changed } }

    /// The time in microseconds until edits of a disconnected editor may be claimed; nil if there is none.
    var timeUntilFree: Int64? {
        let now = clock.nowMicroseconds()
        return state.withLock { state in
            state.disconnected.values.map { max(0, $0 + Self.reconnectionTime - now) }.filter { $0 > 0 }.min()
        }
    }
}

extension PendingEdit {
    fileprivate var key: EditClaims.Key { EditClaims.Key(publisher: publisher, id: accepted.id) }
}

extension ChangeRequest {
    /// The published edit that the request finishes.
    fileprivate var finishedEdit: String? {
        switch self {
        case .failEdit(let failed): failed.id
        case .editAsset(let edit): edit.publishedEdit
        case .revertAsset(let revert): revert.publishedEdit
        default: nil
        }
    }
}

import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// The keys of a result as the catalog sent them, and the token at which they were read.
struct LoadedKeys: Sendable {
    let keys: KeyFrames
    let token: ChangeToken
    /// The scope of the fetch at that token, or the list of its limited grant; nil if it needs none.
    var scope: Set<ObjectID>?
    /// The assets that are in the moments of the view, for results that depend on these (`Fetch.dependsOnViewMoments`).
    let members: [ObjectID: MomentMember]?
    /// True if the object of the fetch is deleted.
    let isDeleted: Bool
}

/// Loads the keys of results from the catalog.
struct KeyLoader: Sendable {
    let history: ChangeHistory
    let configuration: ChangeBrokerConfiguration

    /// Returns the keys of a whole result.
    ///
    /// - Parameters:
    ///   - capacity: the maximum number of keys and of their bytes
    ///   - token: the state to read; nil for the newest
    ///   - since: a token at which the object of the fetch existed, if it may be deleted
    /// - Throws: `limit_exceeded`; `identifier_not_found` if the object of the fetch does not exist; `unavailable`
    func keys(
        of fetch: Fetch,
        _ capacity: (rows: Int, bytes: Int),
        at token: ChangeToken? = nil,
        since: ChangeToken? = nil
    ) async throws(RPCError) -> LoadedKeys {
        let request = FetchKeys(
            fetch: fetch.whole.wireForm,
            maxCount: capacity.rows,
            token: token,
            since: since,
            onBehalfOf: fetch.granted?.identity
        )
        var keys = KeyFrames()
        var end: (result: FetchKeys.Result, granted: [ObjectID]?, members: [ObjectID: MomentMember]?)?
        do throws(RPCError) {
            for try await event in history.catalog.stream(request, credit: configuration.catalogCredit) {
                switch event {
                case .notification(_, _, let attachments):
                    for frame in attachments { try keys.add(frame) }
                    guard keys.byteCount <= capacity.bytes else {
                        throw RPCError.resultsTooLarge(limit: configuration.maxFetchBytes)
                    }
                case .response(let response):
                    let granted = response.attachments.first.flatMap(ObjectID.list)
                    end = (response.result, granted, response.attachments.dropFirst().first.flatMap(MomentMember.list))
                }
            }
        } catch  where error.isTransient && error.errorCode != .deadlineExceeded {
            throw .catalogUnreachable(has: "result")
        }
        guard let (end, granted, members) = end, end.count == keys.count,
            (end.scope != nil) == fetch.kind.needsScope, (granted != nil) == (fetch.granted != nil),
            (members != nil) == fetch.dependsOnViewMoments
        else { throw .incompleteKeys }
        return LoadedKeys(
            keys: keys,
            token: end.token,
            scope: (granted ?? end.scope).map { Set($0) },
            members: members,
            isDeleted: end.objectWasDeleted
        )
    }
}

public import Contracts
public import Glibc
public import JSONValue
public import Messaging
public import PhotoModel
import Synchronization

/// The access of identities, as far as a service knows it.
///
/// Each identity has one byte (``CachedPermission``), which all of its connections share and requests read without a
/// lock. The service learns of changes from the catalog's history, and asks the catalog once about an unknown identity.
/// While the history cannot be followed, no permission is cached: for each request of an identity other than the owner
/// the catalog is asked, and the request is refused if the catalog does not answer.
public final class AccessTable: Sendable {
    /// Requests the permission and the public key of an identity.
    ///
    /// - Parameter newest: the newest known change of a grant, which the result has to include; nil for none
    public typealias Lookup =
        @Sendable (_ identity: String, _ newest: ChangeToken?) async throws(RPCError) -> GrantStatus.Result

    private struct State {
        var permissions: [String: CachedPermission] = [:]
        /// The public keys of the identities with a cached permission, of those that have a key.
        var keys: [String: String] = [:]
        /// The permission that last allowed requests of each identity, also while no permission is cached. Running
        /// requests are reviewed if it changes.
        var lastAllowed: [String: UInt8] = [:]
        /// Grows with each change, so that the result of an earlier lookup is not cached.
        var generation: UInt64 = 0
        var newestChange: ChangeToken?
        var newestSequence: Int64 { newestChange?.sequence ?? 0 }
        /// True while changes arrive.
        var isCurrent = false
        var asking: Set<String> = []
        var review: (@Sendable (Set<String>) -> Void)?
        var answered: (@Sendable () -> Void)?

        /// Records the permission that allows an identity's requests from now on.
        ///
        /// - Returns: true if another role allowed earlier requests. Consent is not compared, because it is checked
        ///   when a transaction begins
        mutating func noteAllowed(_ identity: String, _ permission: Permission) -> Bool {
            let old = lastAllowed.updateValue(permission.byte, forKey: identity)
            return old.map { Permission(byte: $0).role != permission.role } ?? false
        }

        /// Returns the permission in an answer of the catalog; `denied` if it is about another key of the same name.
        ///
        /// - Parameter listed: the identity's key on this service's own lists, if it has not connected with one
        func permission(of identity: String, _ answer: GrantStatus.Result, _ listed: String?) -> Permission {
            guard let own = keys[identity] ?? listed, own != answer.key else { return answer.permission }
            return Permission(.denied)
        }
    }

    /// The maximum number of identities in the table. All lists together have no more keys.
    private static let limit = 40_000

    private let lookup: Lookup
    private let listedKey: @Sendable (String) -> String?
    /// Returns the permission of an identity if it is known without a lookup; nil if not.
    private let known: @Sendable (String) -> Permission?
    private let state = Mutex(State())

    /// Creates the table of a service that asks the catalog.
    ///
    /// - Parameter listedKey: returns the public key that the service's own lists have for an identity; nil for none
    public init(listedKey: @escaping @Sendable (String) -> String? = { _ in nil }, lookup: @escaping Lookup) {
        self.lookup = lookup
        self.listedKey = listedKey
        known = { Self.local($0) }
    }

    /// Creates the table of the catalog, which knows all permissions.
    public init(known: @escaping @Sendable (String) -> Permission) {
        self.known = { known($0) }
        listedKey = { _ in nil }
        lookup = { (identity: String, _: ChangeToken?) throws(RPCError) in GrantStatus.Result(known(identity)) }
        state.withLock { $0.isCurrent = true }
    }

    /// Returns the permission that follows from the connection of an identity alone: over ipc the user who runs the
    /// service, and root, are the owner, and a service started with `--trust-loopback` trusts loopback TCP connections.
    /// Nil for all others.
    public static func local(_ identity: String, ownUID: UInt32 = geteuid()) -> Permission? {
        switch identity {
        case "uid:\(ownUID)", "uid:0": Permission(.host)
        case "loopback": Permission(.readWrite)
        default: nil
        }
    }

    /// Sets the function that is called with identities whose access has changed. Call it once, before the service
    /// runs.
    public func onChange(_ review: @escaping @Sendable (Set<String>) -> Void) { state.withLock { $0.review = review } }

    /// Sets the function that is called when a permission has become known for which ``mayRead(_:key:)`` has returned
    /// nil. Call it once, before the service runs.
    public func onAnswer(_ answered: @escaping @Sendable () -> Void) { state.withLock { $0.answered = answered } }

    // MARK: Requests

    /// Returns the cached permission of an identity.
    ///
    /// - Parameter key: the public key that the identity connects with; nil if it is not known. A new key does
    ///   not inherit the permission of the old one: that is forgotten, and connections with the old key are refused.
    public func cachedPermission(of identity: String, key: String? = nil) -> CachedPermission {
        state.withLock { state in
            if let cached = state.permissions[identity] {
                guard let key, let old = state.keys[identity], old != key else {
                    if let key { state.keys[identity] = key }
                    return cached
                }
                state.generation += 1
                cached.value = Permission(.denied).byte
            }
            let cached = CachedPermission(known(identity)?.byte ?? 0)
            state.lastAllowed[identity] = cached.value == 0 ? nil : cached.value
            if state.permissions.count < Self.limit || state.permissions[identity] != nil {
                state.permissions[identity] = cached
                state.keys[identity] = key
            }
            return cached
        }
    }

    /// Returns the permission of an identity, from the catalog if it is not cached.
    public func permission(of identity: String, _ cached: CachedPermission?) async throws(RPCError) -> Permission {
        let cached = cached ?? self.cachedPermission(of: identity, key: listedKey(identity))
        let permission = Permission(byte: cached.value)
        guard permission.role == .unknown else { return permission }
        let (generation, isCurrent, newest) = state.withLock { ($0.generation, $0.isCurrent, $0.newestChange) }
        let found: GrantStatus.Result
        do throws(RPCError) {
            found = try await lookup(identity, newest)
        } catch {
            throw ErrorCode.unavailable.error(
                "the catalog did not answer which access \(identity) has; try again (\(error.message))",
                ["identity": .string(identity)]
            )
        }
        let listed = listedKey(identity)
        let (answer, review) = state.withLock { state -> (Permission, (@Sendable (Set<String>) -> Void)?) in
            let answer = state.permission(of: identity, found, listed)
            // The catalog may soon list a key that only this service lists now. No change of a grant reports that, so
            // such an answer is not cached.
            let isOfKey = answer == found.permission
            if isOfKey, isCurrent, state.generation == generation, state.isCurrent { cached.value = answer.byte }
            guard state.permissions[identity] === cached else { return (answer, nil) }
            return (answer, state.noteAllowed(identity, answer) ? state.review : nil)
        }
        review?([identity])
        return answer
    }

    /// Returns the permission of an identity; nil if ``permission(of:_:)`` would have to ask the catalog.
    public func knownPermission(of identity: String) -> Permission? {
        let permission = Permission(byte: cachedPermission(of: identity, key: listedKey(identity)).value)
        return permission.role == .unknown ? nil : permission
    }

    /// Returns whether an identity may read the whole library; nil if that is unknown or undecided. If it is unknown,
    /// the catalog is asked, so that a later call has the answer; the function of ``onAnswer(_:)`` is called then.
    public func mayRead(_ identity: String, key: String? = nil) -> Bool? {
        let cached = cachedPermission(of: identity, key: key)
        switch Permission(byte: cached.value).role {
        case .undecided: return nil
        case .unknown:
            guard state.withLock({ $0.asking.insert(identity).inserted }) else { return nil }
            Task {
                _ = try? await permission(of: identity, cached)
                let answered = state.withLock { state in
                    state.asking.remove(identity)
                    return state.permissions[identity] === cached ? state.answered : nil
                }
                // Without an answer only the next call asks again: the function would call this at once.
                if Permission(byte: cached.value).role != .unknown { answered?() }
            }
            return nil
        case let role: return Permission(role).allows(.read)
        }
    }

    /// Returns whether a service may keep data for an identity: false after its access was revoked.
    ///
    /// - Parameter access: the access for which the data is kept
    public func mayKeep(_ identity: String, for access: MethodAccess = .read) -> Bool {
        let permission = Permission(byte: cachedPermission(of: identity).value)
        return permission.role == .unknown || permission.allows(access)
    }

    // MARK: Changes

    /// The newest change of a grant that the service knows. Answers of a catalog that has not reached it are outdated.
    public var newestChange: ChangeToken? { state.withLock { $0.newestChange } }

    /// Records that the grant of an identity has changed: asks the catalog for the new permission, and uses that of the
    /// grant alone if the catalog does not answer.
    ///
    /// - Parameter token: that of the change
    public func note(_ grant: Grant, at token: ChangeToken) async {
        let identity = grant.identity
        let isKnown = state.withLock { state in
            state.generation += 1
            if state.newestChange?.library != token.library || state.newestSequence < token.sequence {
                state.newestChange = token
            }
            return state.permissions[identity] != nil
        }
        guard isKnown else { return }
        var answer = GrantStatus.Result(Permission(grant))
        answer.key = grant.key
        await ask(about: identity, else: answer)
    }

    /// Asks the catalog for the permission of an identity, and records it.
    ///
    /// - Parameter other: used if the catalog does not answer; nil to ask again with the next request
    private func ask(about identity: String, else other: GrantStatus.Result? = nil) async {
        while true {
            let (generation, newest) = state.withLock { ($0.generation, $0.newestChange) }
            guard let answer = (try? await lookup(identity, newest)) ?? other else { return }
            let listed = listedKey(identity)
            let permission = state.withLock { $0.permission(of: identity, answer, listed) }
            // If another change has arrived meanwhile, the answer may be outdated.
            if setPermission(of: identity, to: permission, ifGeneration: generation) { return }
        }
    }

    /// Records the permission of an identity.
    ///
    /// - Parameter expected: the generation that the table must have; nil for any
    /// - Returns: false if it has another one, and the permission was not recorded
    @discardableResult
    public func setPermission(
        of identity: String,
        to permission: Permission,
        ifGeneration expected: UInt64? = nil
    ) -> Bool {
        guard AccessTable.local(identity)?.role != .host else { return true }
        typealias Functions = (review: (@Sendable (Set<String>) -> Void)?, answered: (@Sendable () -> Void)?)
        let (isRecorded, functions) = state.withLock { state -> (Bool, Functions) in
            if let expected, expected != state.generation { return (false, (nil, nil)) }
            guard let cached = state.permissions[identity] else { return (true, (nil, nil)) }
            let wasUnknown = Permission(byte: cached.value).role == .unknown
            if cached.value != permission.byte { state.generation += 1 }
            cached.value = permission.byte
            let hasChanged = state.noteAllowed(identity, permission)
            return (true, (hasChanged ? state.review : nil, wasUnknown ? state.answered : nil))
        }
        functions.review?([identity])
        functions.answered?()
        return isRecorded
    }

    /// Ends the calls of the functions, because the service ends.
    public func close() { state.withLock { ($0.review, $0.answered) = (nil, nil) } }

    /// Updates every cached permission from those that are known without a lookup; for the catalog.
    public func refresh() {
        let identities = state.withLock { Array($0.permissions.keys) }
        for identity in identities {
            if let permission = known(identity) { setPermission(of: identity, to: permission) }
        }
    }

    /// Records that all changes up to now have arrived. If some may have been missed before, the catalog is asked about
    /// every identity again, and running requests of identities that have lost access end.
    public func confirm() {
        let identities = state.withLock { state -> [String] in
            guard !state.isCurrent else { return [] }
            state.isCurrent = true
            return state.permissions.keys.filter { known($0) == nil }
        }
        guard !identities.isEmpty else { return }
        Task {
            for identity in identities { await ask(about: identity) }
        }
    }

    /// Forgets the permissions that need a lookup, because changes may have been missed. Running requests continue
    /// until ``confirm()``.
    public func forget() {
        state.withLock { state in
            state.generation += 1
            state.isCurrent = false
            for (identity, cached) in state.permissions where known(identity) == nil { cached.value = 0 }
        }
    }
}

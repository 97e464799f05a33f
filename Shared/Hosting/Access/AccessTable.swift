public import Contracts
public import Glibc
public import JSONValue
public import Messaging
public import PhotoModel
import Synchronization

/// The access of identities, as far as a service knows it.
///
/// Each identity has one byte (``CachedPermission``), which all of its connections share and requests read without a
/// lock. The service learns of changes from the catalog's history; an identity that it does not know is asked about
/// once. While the history cannot be followed, nothing is remembered: each request of an identity other than the owner
/// asks the catalog, and is refused if that does not answer.
public final class AccessTable: Sendable {
    /// Asks what an identity may do, and which public key it has.
    ///
    /// - Parameter newest: the newest change of a grant that is known, which the answer has to include; nil for none
    public typealias Lookup =
        @Sendable (_ identity: String, _ newest: ChangeToken?) async throws(RPCError) -> GrantStatus.Result

    private struct State {
        var permissions: [String: CachedPermission] = [:]
        /// The public keys of the identities with a cached permission, as far as they have one.
        var keys: [String: String] = [:]
        /// The permission by which requests of each identity were last allowed, also while nothing is remembered. Those
        /// that run are reviewed if it becomes another.
        var lastAllowed: [String: UInt8] = [:]
        /// Grows with every change, so that an answer that was asked for before it is not remembered.
        var generation: UInt64 = 0
        var newestChange: ChangeToken?
        var newestSequence: Int64 { newestChange?.sequence ?? 0 }
        /// True while changes arrive.
        var isCurrent = false
        var asking: Set<String> = []
        var review: (@Sendable (Set<String>) -> Void)?

        /// Notes by what an identity's requests are allowed from now on.
        ///
        /// - Returns: whether earlier ones were allowed by another role; what needs consent is decided for each
        ///   transaction when it begins
        mutating func noteAllowed(_ identity: String, _ permission: Permission) -> Bool {
            let old = lastAllowed.updateValue(permission.byte, forKey: identity)
            return old.map { Permission(byte: $0).role != permission.role } ?? false
        }

        /// Returns the permission of an answer of the catalog. One about another key of the same name opens nothing.
        ///
        /// - Parameter listed: the identity's key on this service's own lists, if it has not connected with one
        func permission(of identity: String, _ answer: GrantStatus.Result, _ listed: String?) -> Permission {
            guard let own = keys[identity] ?? listed, own != answer.key else { return answer.permission }
            return Permission(.denied)
        }
    }

    /// The most identities that are remembered; there are no more keys on all lists together.
    private static let limit = 40_000

    private let lookup: Lookup
    private let listedKey: @Sendable (String) -> String?
    /// Returns what is known without asking; nil if that is nothing.
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

    /// Creates the table of the catalog, which knows everything itself.
    public init(known: @escaping @Sendable (String) -> Permission) {
        self.known = { known($0) }
        listedKey = { _ in nil }
        lookup = { (identity: String, _: ChangeToken?) throws(RPCError) in GrantStatus.Result(known(identity)) }
        state.withLock { $0.isCurrent = true }
    }

    /// Returns what is decided by how an identity is connected: over ipc the user who runs the service, and root, are the
    /// owner. A loopback TCP connection is trusted if the service was started so (`--trust-loopback`).
    public static func local(_ identity: String, ownUID: UInt32 = geteuid()) -> Permission? {
        switch identity {
        case "uid:\(ownUID)", "uid:0": Permission(.host)
        case "loopback": Permission(.readWrite)
        default: nil
        }
    }

    /// Sets what is done about identities whose access changes. Call it once, before the service runs.
    public func onChange(_ review: @escaping @Sendable (Set<String>) -> Void) { state.withLock { $0.review = review } }

    // MARK: Requests

    /// Returns the cached permission of an identity.
    ///
    /// - Parameter key: the public key that the identity connects with; nil if that is not known. Another key than before
    ///   inherits nothing: what was known is forgotten, and refused to connections of the old key.
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

    /// Returns what an identity may do, asking the catalog if it is not known.
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
                "the catalog does not answer what \(identity) may do; try again (\(error.message))",
                ["identity": .string(identity)]
            )
        }
        let listed = listedKey(identity)
        let (answer, review) = state.withLock { state -> (Permission, (@Sendable (Set<String>) -> Void)?) in
            let answer = state.permission(of: identity, found, listed)
            // A key that this service lists and the catalog does not may be on its list soon: no change of a grant says so.
            let isOfKey = answer == found.permission
            if isOfKey, isCurrent, state.generation == generation, state.isCurrent { cached.value = answer.byte }
            guard state.permissions[identity] === cached else { return (answer, nil) }
            return (answer, state.noteAllowed(identity, answer) ? state.review : nil)
        }
        review?([identity])
        return answer
    }

    /// Returns what an identity may do; nil if it is not known, and ``permission(of:_:)`` asks.
    public func knownPermission(of identity: String) -> Permission? {
        let permission = Permission(byte: cachedPermission(of: identity, key: listedKey(identity)).value)
        return permission.role == .unknown ? nil : permission
    }

    /// Returns whether an identity may read the whole library; nil if that is not known or not decided. Then the catalog
    /// is asked, for the next call.
    public func mayRead(_ identity: String, key: String? = nil) -> Bool? {
        let cached = cachedPermission(of: identity, key: key)
        switch Permission(byte: cached.value).role {
        case .undecided: return nil
        case .unknown:
            guard state.withLock({ $0.asking.insert(identity).inserted }) else { return nil }
            Task {
                _ = try? await permission(of: identity, cached)
                state.withLock { _ = $0.asking.remove(identity) }
            }
            return nil
        case let role: return Permission(role).allows(.read)
        }
    }

    /// Returns whether a service may keep something for an identity: false after its access was taken away.
    ///
    /// - Parameter access: the access for which it is kept
    public func mayKeep(_ identity: String, for access: MethodAccess = .read) -> Bool {
        let permission = Permission(byte: cachedPermission(of: identity).value)
        return permission.role == .unknown || permission.allows(access)
    }

    // MARK: Changes

    /// The newest change of a grant that the service knows: a catalog that has not reached it gives the old answers.
    public var newestChange: ChangeToken? { state.withLock { $0.newestChange } }

    /// Notes that the grant of an identity has changed: asks the catalog what the identity may do now, and goes by the
    /// grant alone if it does not answer.
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

    /// Asks the catalog what an identity may do now, and notes it.
    ///
    /// - Parameter other: the answer if the catalog does not give one; nil if it is asked again with the next request
    private func ask(about identity: String, else other: GrantStatus.Result? = nil) async {
        while true {
            let (generation, newest) = state.withLock { ($0.generation, $0.newestChange) }
            guard let answer = (try? await lookup(identity, newest)) ?? other else { return }
            let listed = listedKey(identity)
            let permission = state.withLock { $0.permission(of: identity, answer, listed) }
            // An answer that another change has overtaken may be the older one.
            if changed(identity, to: permission, ifGeneration: generation) { return }
        }
    }

    /// Notes what an identity may do from now on.
    ///
    /// - Parameter wanted: the generation that the table must have; nil for any
    /// - Returns: false if it has another one, and nothing was noted
    @discardableResult
    public func changed(_ identity: String, to permission: Permission, ifGeneration wanted: UInt64? = nil) -> Bool {
        guard AccessTable.local(identity)?.role != .host else { return true }
        let (isNoted, review) = state.withLock { state -> (Bool, (@Sendable (Set<String>) -> Void)?) in
            if let wanted, wanted != state.generation { return (false, nil) }
            guard let cached = state.permissions[identity] else { return (true, nil) }
            if cached.value != permission.byte { state.generation += 1 }
            cached.value = permission.byte
            return (true, state.noteAllowed(identity, permission) ? state.review : nil)
        }
        review?([identity])
        return isNoted
    }

    /// Ends the reviews, because the service ends.
    public func close() { state.withLock { $0.review = nil } }

    /// Compares every cached permission with what is known now; for the catalog.
    public func refresh() {
        let identities = state.withLock { Array($0.permissions.keys) }
        for identity in identities { if let permission = known(identity) { changed(identity, to: permission) } }
    }

    /// Notes that all changes up to now have arrived. If some may have been missed before, every identity is asked about
    /// again, and what runs for those that have lost access ends.
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

    /// Forgets what has to be asked, because changes may have been missed. Requests that run go on until ``confirm()``.
    public func forget() {
        state.withLock { state in
            state.generation += 1
            state.isCurrent = false
            for (identity, cached) in state.permissions where known(identity) == nil { cached.value = 0 }
        }
    }
}

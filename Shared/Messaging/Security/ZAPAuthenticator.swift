import Basics
public import JSONValue
import Logging
import Synchronization

/// Authenticates connections to the CURVE servers of this process: the handler of ZeroMQ's authentication protocol
/// (ZAP, RFC 27).
///
/// There is one for each context. It fails closed: a key that is not on the domain's list is refused, and so is every
/// connection to a domain without a list. Connections are checked when they are made. Admitted keys are checked again
/// once a second, and the servers of a domain are notified of keys that were removed from its list. A key that is put
/// on the list again, under the same name, is admitted again: its connections may still be open.
public final class ZAPAuthenticator: Sendable {
    /// Returns the name of a key on the list of a domain, or nil if it is not listed.
    ///
    /// Called on the authenticator's own thread; it may read a small file.
    public typealias Admission = @Sendable (_ domain: String, _ publicKey: String) -> String?
    /// Returns whether the owner of a listed key may connect now; nil if that is not known yet or may change soon. The
    /// connection then waits some seconds for ``decideSoon()``; after that the client has to try again.
    ///
    /// Called on the authenticator's own thread; it must not block.
    public typealias Approval = @Sendable (_ identity: String, _ publicKey: String) -> Bool?
    /// Returns whether a listed key is that of a service on another machine.
    ///
    /// Called on the authenticator's own thread; it may read a small file.
    public typealias ServiceCheck = @Sendable (_ name: String, _ publicKey: String) -> Bool
    /// Called with the keys that were removed from the list; it must not block.
    typealias RevocationHook = @Sendable (_ publicKeys: Set<String>) -> Void

    /// A registration for keys removed from a list; it ends when this object is deallocated.
    final class RevocationSubscription: Sendable {
        private weak let authenticator: ZAPAuthenticator?
        private let domain: String
        private let number: UInt64

        fileprivate init(_ authenticator: ZAPAuthenticator, _ domain: String, _ number: UInt64) {
            self.authenticator = authenticator
            self.domain = domain
            self.number = number
        }

        deinit { authenticator?.removeHook(domain, number) }
    }

    private struct Domain {
        let admission: Admission
        let approval: Approval?
        let isService: ServiceCheck
        let logger: Logger
        /// Names of the keys that have connected since the start, by key.
        var admitted: [String: String] = [:]
        /// The keys that were admitted and have been removed from the list since, with their names and the time.
        var removed: [String: (name: String, at: Int64)] = [:]
        /// The admitted keys that belonged to services when they last connected.
        var services: Set<String> = []
        var admissions = 0
        var refusals = 0
        var revocations = 0
        var log = LogThrottle()
        /// A token bucket for each key: the tokens that were left at a time, in microseconds.
        var allowances: [String: (tokens: Double, time: Int64)] = [:]
        var rateLog = LogThrottle()

        /// Returns whether a key is on the list of a domain under a name and may connect; nil if that is not known yet.
        func approves(_ key: String, as keyName: String, in domain: String) -> Bool? {
            guard admission(domain, key) == keyName else { return false }
            guard let approval else { return true }
            return approval(CurveIdentity(key: key, name: keyName).identity, key)
        }

        /// Takes a token for a connection of a key; returns false if none is left.
        mutating func takeToken(for key: String, at now: Int64) -> Bool {
            let maximum = Double(ZAPAuthenticator.connectionBurst)
            let (tokens, time) = allowances[key] ?? (tokens: maximum, time: now)
            let minutes = Double(now.addingClamped(-time)) / 60e6
            let allowance = min(maximum, tokens + minutes * Double(ZAPAuthenticator.connectionsPerMinute))
            let isAllowed = allowance >= 1
            allowances[key] = (isAllowed ? allowance - 1 : allowance, now)
            return isAllowed
        }
    }

    private struct State {
        var domains: [String: Domain] = [:]
        /// Refused connections to domains that have no list.
        var unknownDomainRefusals = 0
        var lastHook: UInt64 = 0
        var hooks: [String: [UInt64: RevocationHook]] = [:]
    }

    private let state = Mutex(State())
    private let handler = Mutex<ZAPHandler?>(nil)
    private let clock: MonotonicClock

    init(clock: MonotonicClock = .system) { self.clock = clock }

    /// The maximum length of a name in UTF-8 bytes; longer ones are refused, because libzmq could not carry them.
    static let maxNameBytes = 128

    /// The connections that one key may make to the servers of a domain in a minute on average, and at once after a
    /// pause; a client beyond these limits has to try again.
    ///
    /// libzmq 4.3.4 numbers connections, and ends the process if a number is the routing id that another peer has
    /// chosen. At this rate a client that has chosen many such ids needs hours until a number equals one of them.
    static let connectionsPerMinute = 1024
    static let connectionBurst = 16_384

    /// The time for which a client whose key was removed from the list is asked to try again instead of being refused:
    /// lists are files, and may be missing while they are copied. After a refusal libzmq does not try again.
    static let removalGrace = Duration.seconds(60)

    /// Opens a domain; see ``MessagingContext/admit(to:logger:approval:isService:admission:)``.
    func open(
        _ domain: String,
        context: MessagingContext,
        logger: Logger,
        approval: Approval?,
        isService: @escaping ServiceCheck,
        admission: @escaping Admission
    ) throws(MessagingError) {
        try handler.withLock { handler throws(MessagingError) in
            if handler == nil { handler = try ZAPHandler(authenticator: self, context: context, clock: clock) }
        }
        state.withLock { state in
            state.domains[domain] = Domain(
                admission: admission,
                approval: approval,
                isService: isService,
                logger: logger
            )
        }
    }

    /// Checks the admitted keys and the connections that wait again soon, because the access of their owners has changed.
    public func reviewSoon() { handler.withLock { $0 }?.reviewSoon() }

    /// Decides soon about the connections that wait, because the approval of a key may be known now.
    public func decideSoon() { handler.withLock { $0 }?.decideSoon() }

    /// Returns the counters of each domain, by name.
    public func metrics() -> JSONObject {
        state.withLock { state in
            var object = JSONObject()
            for (name, domain) in state.domains.sorted(by: { $0.key < $1.key }) {
                object[name] = [
                    "admitted": JSON(domain.admissions), "refused": JSON(domain.refusals),
                    "revoked": JSON(domain.revocations), "keys": JSON(domain.admitted.count),
                ]
            }
            if state.unknownDomainRefusals > 0 { object["refusedElsewhere"] = JSON(state.unknownDomainRefusals) }
            return object
        }
    }

    // MARK: For sockets

    /// Returns whether a connected key is still on the list under the same name.
    func isAdmitted(_ curveIdentity: CurveIdentity, to domain: String) -> Bool {
        state.withLock { $0.domains[domain]?.admitted[curveIdentity.key] == curveIdentity.name }
    }

    /// Returns whether an admitted key is that of a service.
    func isService(_ curveIdentity: CurveIdentity, in domain: String) -> Bool {
        state.withLock { $0.domains[domain]?.services.contains(curveIdentity.key) == true }
    }

    /// Adds a hook for keys that are removed from the list of a domain.
    func addRevocationHook(for domain: String, _ hook: @escaping RevocationHook) -> RevocationSubscription {
        let number = state.withLock { state in
            state.lastHook += 1
            state.hooks[domain, default: [:]][state.lastHook] = hook
            return state.lastHook
        }
        return RevocationSubscription(self, domain, number)
    }

    private func removeHook(_ domain: String, _ number: UInt64) {
        state.withLock { _ = $0.hooks[domain]?.removeValue(forKey: number) }
    }

    // MARK: For the ZAP handler

    /// Decides about one connection.
    func decide(domain name: String, key: CurvePublicKey?, address: String) -> ZAPRequest.Decision {
        let (admission, approval, serviceCheck) = state.withLock { state in
            let domain = state.domains[name]
            return (domain?.admission, domain?.approval, domain?.isService)
        }
        var curveIdentity: CurveIdentity?
        if let admission, let key, let keyName = admission(name, key.text),
            (1...Self.maxNameBytes).contains(keyName.utf8.count)
        {
            let listed = CurveIdentity(key: key.text, name: keyName)
            switch approval.map({ $0(listed.identity, listed.key) }) ?? true {
            case nil: return .undecided
            case true?: curveIdentity = listed
            case false?: break
            }
        }
        let now = clock.nowMicroseconds()
        if let curveIdentity,
            state.withLock({ $0.domains[name]?.takeToken(for: curveIdentity.key, at: now) }) == false
        {
            reportRateLimit(curveIdentity, domain: name, address: address, at: now)
            return .later
        }
        if curveIdentity == nil, let key, wasRemoved(key.text, from: name, at: now) { return .later }
        let isService = curveIdentity.map { serviceCheck?($0.name, $0.key) == true } ?? false
        let report = state.withLock { state -> (Logger, Int)? in
            guard var domain = state.domains[name] else {
                state.unknownDomainRefusals += 1
                return nil
            }
            defer { state.domains[name] = domain }
            if let curveIdentity {
                domain.admissions += 1
                domain.admitted[curveIdentity.key] = curveIdentity.name
                domain.removed[curveIdentity.key] = nil
                if isService {
                    domain.services.insert(curveIdentity.key)
                } else {
                    domain.services.remove(curveIdentity.key)
                }
                return nil
            }
            domain.refusals += 1
            return domain.log.count(at: now).map { (domain.logger, $0) }
        }
        if let (logger, count) = report {
            logger.warning(
                "connection refused: its key is not on the list of this domain",
                metadata: [
                    "domain": "\(name)", "key": "\(key?.text ?? "none")", "address": "\(address)",
                    "refusals": "\(count)",
                ]
            )
        }
        return curveIdentity.map { .admitted($0.userID) } ?? .refused
    }

    /// Returns whether an admitted key was removed from the list a short while ago.
    private func wasRemoved(_ key: String, from domain: String, at now: Int64) -> Bool {
        guard let removal = state.withLock({ $0.domains[domain]?.removed[key]?.at }) else { return false }
        return now.addingClamped(-removal) < Self.removalGrace.microseconds
    }

    private func reportRateLimit(_ identity: CurveIdentity, domain name: String, address: String, at now: Int64) {
        let report = state.withLock { state -> (Logger, Int)? in
            guard let count = state.domains[name]?.rateLog.count(at: now) else { return nil }
            return state.domains[name].map { ($0.logger, count) }
        }
        guard let (logger, count) = report else { return }
        logger.warning(
            "connection refused for now: its key has made too many connections in a short time",
            metadata: [
                "domain": "\(name)", "identity": "\(identity.identity)", "address": "\(address)",
                "refusals": "\(count)",
            ]
        )
    }

    /// Checks again the keys that were admitted, and those of them that were removed from the list.
    ///
    /// - Returns: true if there are any, so that they have to be checked again later
    func review() -> Bool {
        let domains = state.withLock { $0.domains }
        var isNeeded = false
        for (name, domain) in domains {
            isNeeded = isNeeded || !domain.admitted.isEmpty || !domain.removed.isEmpty
            readmit(domain, name)
            let removed = Set(domain.admitted.filter { domain.approves($0, as: $1, in: name) == false }.keys)
            guard !removed.isEmpty else { continue }
            let now = clock.nowMicroseconds()
            let hooks = state.withLock { state -> [RevocationHook] in
                for (key, keyName) in domain.admitted where removed.contains(key) {
                    state.domains[name]?.admitted[key] = nil
                    state.domains[name]?.removed[key] = (keyName, now)
                    state.domains[name]?.allowances[key] = nil
                    state.domains[name]?.services.remove(key)
                }
                state.domains[name]?.revocations += removed.count
                return state.hooks[name].map { Array($0.values) } ?? []
            }
            domain.logger.notice(
                "keys were removed from the list, or may no longer connect; their connections lose access",
                metadata: ["domain": "\(name)", "keys": "\(removed.sorted())"]
            )
            for hook in hooks { hook(removed) }
        }
        return isNeeded
    }

    /// Admits again the removed keys that are on the list under the same name.
    private func readmit(_ domain: Domain, _ name: String) {
        let returned = domain.removed.filter { domain.approves($0, as: $1.name, in: name) == true }
        guard !returned.isEmpty else { return }
        let services = returned.filter { key, removal in domain.isService(removal.name, key) }
        state.withLock { state in
            for (key, removal) in returned {
                state.domains[name]?.removed[key] = nil
                state.domains[name]?.admitted[key] = removal.name
            }
            state.domains[name]?.services.formUnion(services.keys)
        }
        domain.logger.notice(
            "keys are on the list again; their connections have access",
            metadata: ["domain": "\(name)", "keys": "\(returned.keys.sorted())"]
        )
    }
}

public import JSONValue
import Logging
import Synchronization

/// Decides who may connect to the CURVE servers of this process: the handler of ZeroMQ's authentication protocol (RFC 27).
///
/// There is one for each context. It fails closed: who is on no list, or asks for a domain without a list, is refused.
/// Connections are decided when they are made; keys that were admitted are looked up again once a second, and whoever
/// serves a domain learns which of them are on its list no more.
public final class Doorkeeper: Sendable {
    /// The name under which a key is on the list of a domain; nil where it is not.
    ///
    /// Called on the doorkeeper's own thread; it may read a small file.
    public typealias Admission = @Sendable (_ domain: String, _ publicKey: String) -> String?
    /// Told which keys were taken off the list; it must not wait.
    typealias RevocationHook = @Sendable (_ publicKeys: Set<String>) -> Void

    /// Somebody who hears of keys taken off a list, for as long as this lives.
    final class Listening: Sendable {
        private weak let doorkeeper: Doorkeeper?
        private let domain: String
        private let number: UInt64

        fileprivate init(_ doorkeeper: Doorkeeper, _ domain: String, _ number: UInt64) {
            self.doorkeeper = doorkeeper
            self.domain = domain
            self.number = number
        }

        deinit { doorkeeper?.removeHook(domain, number) }
    }

    private struct Domain {
        let admission: Admission
        let logger: Logger
        /// Keys with a connection made since the start, by name.
        var admitted: [String: String] = [:]
        var admissions = 0
        var refusals = 0
        var revocations = 0
        var log = RefusalLog()
    }

    private struct State {
        var domains: [String: Domain] = [:]
        /// Refusals of domains that have no list.
        var strays = 0
        var lastHook: UInt64 = 0
        var hooks: [String: [UInt64: RevocationHook]] = [:]
    }

    private let state = Mutex(State())
    private let desk = Mutex<DoorkeeperDesk?>(nil)
    private let clock: MonotonicClock

    init(clock: MonotonicClock = .system) { self.clock = clock }

    /// Names longer than this are refused, so that libzmq can carry them.
    static let longestName = 128

    /// As ``MessagingContext/admit(to:logger:admission:)``.
    func open(
        _ domain: String,
        context: MessagingContext,
        logger: Logger,
        admission: @escaping Admission
    ) throws(MessagingError) {
        try desk.withLock { desk throws(MessagingError) in
            if desk == nil { desk = try DoorkeeperDesk(doorkeeper: self, context: context, clock: clock) }
        }
        state.withLock { $0.domains[domain] = Domain(admission: admission, logger: logger) }
    }

    /// What happened so far in each domain, by name.
    public func figures() -> JSONObject {
        state.withLock { state in
            var object = JSONObject()
            for (name, domain) in state.domains.sorted(by: { $0.key < $1.key }) {
                object[name] = [
                    "admitted": JSON(domain.admissions), "refused": JSON(domain.refusals),
                    "revoked": JSON(domain.revocations), "keys": JSON(domain.admitted.count),
                ]
            }
            if state.strays > 0 { object["refusedElsewhere"] = JSON(state.strays) }
            return object
        }
    }

    // MARK: For the sockets of the room

    /// Whether a key that connected is still on the list.
    func isAdmitted(_ holder: KeyHolder, to domain: String) -> Bool {
        state.withLock { $0.domains[domain]?.admitted[holder.key] == holder.name }
    }

    func listen(to domain: String, _ hook: @escaping RevocationHook) -> Listening {
        let number = state.withLock { state in
            state.lastHook += 1
            state.hooks[domain, default: [:]][state.lastHook] = hook
            return state.lastHook
        }
        return Listening(self, domain, number)
    }

    private func removeHook(_ domain: String, _ number: UInt64) {
        state.withLock { _ = $0.hooks[domain]?.removeValue(forKey: number) }
    }

    // MARK: For the desk

    /// Decides about one connection.
    ///
    /// - Returns: the user id for libzmq; nil where it is refused
    func decide(domain name: String, key: CurvePublicKey?, address: String) -> String? {
        let admission = state.withLock { $0.domains[name]?.admission }
        var holder: KeyHolder?
        if let admission, let key, let identity = admission(name, key.text),
            (1...Self.longestName).contains(identity.utf8.count)
        {
            holder = KeyHolder(key: key.text, name: identity)
        }
        let now = clock.nowMicroseconds()
        let report = state.withLock { state -> (Logger, Int)? in
            guard var domain = state.domains[name] else {
                state.strays += 1
                return nil
            }
            defer { state.domains[name] = domain }
            if let holder {
                domain.admissions += 1
                domain.admitted[holder.key] = holder.name
                return nil
            }
            domain.refusals += 1
            return domain.log.count(at: now).map { (domain.logger, $0) }
        }
        if let (logger, count) = report {
            logger.warning(
                "a connection is refused: its key is not on the list",
                metadata: [
                    "domain": "\(name)", "key": "\(key?.text ?? "none")", "address": "\(address)",
                    "refusals": "\(count)",
                ]
            )
        }
        return holder?.userID
    }

    /// Looks up again the keys that were admitted.
    ///
    /// - Returns: whether there are any
    func review() -> Bool {
        let domains = state.withLock { $0.domains }
        var isNeeded = false
        for (name, domain) in domains {
            let gone = Set(domain.admitted.filter { domain.admission(name, $0.key) != $0.value }.keys)
            isNeeded = isNeeded || gone.count < domain.admitted.count
            guard !gone.isEmpty else { continue }
            let hooks = state.withLock { state -> [RevocationHook] in
                for key in gone { state.domains[name]?.admitted[key] = nil }
                state.domains[name]?.revocations += gone.count
                return state.hooks[name].map { Array($0.values) } ?? []
            }
            domain.logger.notice(
                "keys were taken off the list",
                metadata: ["domain": "\(name)", "keys": "\(gone.sorted())"]
            )
            for hook in hooks { hook(gone) }
        }
        return isNeeded
    }
}

/// Lets one line a second through, which says how many there were.
struct RefusalLog: Sendable {
    private var lastLine: Int64?
    private var since = 0

    /// Counts one; a number says that a line is due, and for how many it stands.
    mutating func count(at now: Int64) -> Int? {
        since = since.addingClamped(1)
        if let lastLine, now < lastLine.addingClamped(1_000_000) { return nil }
        defer { since = 0 }
        lastLine = now
        return since
    }
}

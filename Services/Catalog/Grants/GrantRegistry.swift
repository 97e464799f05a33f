import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Synchronization

/// All grants in memory, from which the permission of each identity follows.
///
/// A decision of the owner applies to one public key. Without a decision, the file of a listed key states the access
/// (``KeyStatement``); other users of this machine are undecided.
final class GrantRegistry: Sendable {
    /// The maximum number of grants.
    static let limit = 20_000

    private struct Entry {
        var grant: Grant
        /// The sequence of the transaction, so that grants are applied in the order of their transactions.
        var sequence: Int64
    }

    /// The listed keys, and which of them are services; tests replace it.
    struct Keys: Sendable {
        var key: @Sendable (_ identity: String) -> KeyListEntry?
        var all: @Sendable () -> [KeyListEntry]
        var isService: @Sendable (_ identity: String) -> Bool

        static let none = Keys(key: { _ in nil }, all: { [] }, isService: { _ in false })

        init(
            key: @escaping @Sendable (_ identity: String) -> KeyListEntry?,
            all: @escaping @Sendable () -> [KeyListEntry],
            isService: @escaping @Sendable (_ identity: String) -> Bool
        ) {
            (self.key, self.all, self.isService) = (key, all, isService)
        }

        init(_ listener: NetworkListener?) {
            guard let listener else {
                self = .none
                return
            }
            self.init(
                key: { listener.key(of: $0) },
                all: { listener.keys },
                isService: { listener.isService($0) }
            )
        }
    }

    private let keys: Keys
    private let entries: Mutex<[String: Entry]>

    init(_ grants: [Grant], keys: Keys) {
        self.keys = keys
        entries = Mutex(Dictionary(grants.map { ($0.identity, Entry(grant: $0, sequence: 0)) }) { first, _ in first })
    }

    /// Returns the permission of an identity.
    func permission(of identity: String) -> Permission {
        if let local = AccessTable.local(identity) { return local }
        let key = keys.key(identity)
        if identity.hasPrefix("key:"), key == nil { return Permission(.denied) }
        if keys.isService(identity) { return Permission(.service) }
        if let grant = decision(identity, key) { return Permission(grant) }
        guard let key else { return Permission(.undecided) }
        return switch key.statement.access {
        case .owner: Permission(.owner)
        case .ask: Permission(.undecided)
        case .readWrite: Permission(.readWrite, consent: key.statement.consent)
        case .addOnly: Permission(.addOnly, consent: key.statement.consent)
        case .limited: Permission(.limited, consent: key.statement.consent)
        }
    }

    /// Returns the permission of the client on whose behalf a service acts.
    ///
    /// A key has its current permission: none if it is no longer on a list, even for edits that were accepted before.
    /// The service has checked a user of another machine; a decision against that user applies here too.
    func permission(onBehalfOf identity: String) -> Permission {
        if identity.hasPrefix("key:") || AccessTable.local(identity) != nil { return permission(of: identity) }
        return decision(identity, nil).map { Permission($0) } ?? Permission(.readWrite)
    }

    /// Returns the grant of an identity: the decision or the waiting access request, else what its key's file states.
    func grant(of identity: String) -> Grant {
        let key = keys.key(identity)
        return stored(identity, key) ?? key.map(Self.stated) ?? Grant(identity: identity)
    }

    /// All grants by identity: decisions, access requests, and the statements of the files of the other listed keys.
    var all: [Grant] {
        let listed = keys.all()
        var grants = entries.withLock { $0.mapValues(\.grant) }
        for key in listed where stored(key.identity, key) == nil { grants[key.identity] = Self.stated(key) }
        return grants.values.sorted { $0.identity < $1.identity }
    }

    /// Returns the access requests that wait, the oldest first.
    func pending(since date: Int64) -> [Grant] {
        entries.withLock { $0.values.map(\.grant) }
            .filter { $0.status == .notDetermined && $0.date >= date && permission(of: $0.identity).role == .undecided }
            .sorted { ($0.date, $0.identity) < ($1.date, $1.identity) }
    }

    var count: Int { entries.withLock { $0.count } }

    /// Returns true if there is a decision about the identity, or an access request of it.
    func isKnown(_ identity: String) -> Bool { entries.withLock { $0[identity] != nil } }

    /// Returns the public key to which a decision about an identity would apply now.
    func publicKey(of identity: String) -> String? { keys.key(identity)?.publicKey.text }

    /// Applies the grant of a committed transaction, if it changed one. It has to be called before others receive the
    /// transaction: services that follow the grants ask for the new permission at once.
    func apply(_ performed: PerformedWrite) {
        guard let grant = performed.grant, let sequence = performed.record?.sequence else { return }
        entries.withLock { entries in
            guard entries[grant.identity].map({ $0.sequence < sequence }) ?? true else { return }
            entries[grant.identity] = Entry(grant: grant, sequence: sequence)
        }
    }

    private func decision(_ identity: String, _ key: KeyListEntry?) -> Grant? {
        stored(identity, key).flatMap { $0.status == .notDetermined ? nil : $0 }
    }

    /// Returns the stored grant of an identity; nil if there is none, or if it is for another key of the same name.
    private func stored(_ identity: String, _ key: KeyListEntry?) -> Grant? {
        let grant = entries.withLock { $0[identity]?.grant }
        return grant.flatMap { $0.key == key?.publicKey.text ? $0 : nil }
    }

    private static func stated(_ key: KeyListEntry) -> Grant {
        let status: AuthorizationStatus =
            switch key.statement.access {
            case .ask: .notDetermined
            case .limited: .limited
            case .readWrite, .addOnly, .owner: .authorized
            }
        return Grant(
            identity: key.identity,
            status: status,
            access: key.statement.access == .addOnly ? .addOnly : .readWrite,
            scope: status == .limited ? .limited : .all,
            consent: key.statement.consent,
            purpose: key.statement.purpose,
            key: key.publicKey.text,
            decidedBy: key.statement.access == .ask ? nil : "keys"
        )
    }
}

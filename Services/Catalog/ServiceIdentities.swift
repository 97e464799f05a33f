import Contracts
import Glibc
import Hosting
import Messaging

/// Who may act for others and keep the quarantine: the services of this machine, which run as the catalog's own user,
/// and those on the list `services`.
struct ServiceIdentities: Sendable {
    private let ownIdentity: String
    private let isListed: @Sendable (String) -> Bool

    init(door: PublicDoor?, ownUID: UInt32 = geteuid()) {
        self.init(ownUID: ownUID) { door?.isService($0) ?? false }
    }

    init(ownUID: UInt32, isListed: @escaping @Sendable (String) -> Bool) {
        ownIdentity = "uid:\(ownUID)"
        self.isListed = isListed
    }

    /// Throws `access_denied`.
    func check(_ identity: String, for what: String) throws(RPCError) {
        guard identity == ownIdentity || isListed(identity) else {
            throw Refusal.accessDenied.error("\(what) is for services only, and \(identity) is none")
        }
    }
}

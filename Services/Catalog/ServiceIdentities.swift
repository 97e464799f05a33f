import Glibc
import Hosting

/// The identities that may act for other clients and report worker faults: services on this machine, which run as the
/// catalog's own user, and keys on the list `services`.
struct ServiceIdentities: Sendable {
    private let ownIdentity: String
    private let isListed: @Sendable (String) -> Bool

    init(listener: NetworkListener?, ownUID: UInt32 = geteuid()) {
        self.init(ownUID: ownUID) { listener?.isService($0) ?? false }
    }

    init(ownUID: UInt32, isListed: @escaping @Sendable (String) -> Bool) {
        ownIdentity = "uid:\(ownUID)"
        self.isListed = isListed
    }

    /// Returns true if an identity is a service.
    func includes(_ identity: String) -> Bool { identity == ownIdentity || isListed(identity) }

    /// Checks that an identity is a service.
    ///
    /// - Throws: `access_denied` if it is not
    func check(_ identity: String, for request: String) throws(CatalogError) {
        guard includes(identity) else {
            throw CatalogError.notAService(identity, request: request)
        }
    }

    /// Checks that a request comes from the user who runs the catalog, over ipc.
    ///
    /// - Throws: `access_denied` if it does not
    static func checkOwner(_ identity: String, to action: String) throws(CatalogError) {
        guard identity == "uid:\(geteuid())" else {
            throw CatalogError.notOwner(action: action)
        }
    }
}

import ArgumentParser
public import Messaging

/// The addresses of a library's services.
public struct Endpoints: Sendable, Equatable {
    /// The folder of the default addresses.
    public let folder: RunFolder
    /// Security of client connections over TCP.
    public let security: SocketSecurity
    /// Security of the addresses that a service binds, other than those of its ``NetworkListener``: `.none`, which
    /// refuses TCP, or `.trustedLoopback`, which allows TCP without keys on loopback addresses.
    public let localSecurity: SocketSecurity
    private let catalog, thumbnailer, editor, broker, feed, edits: [EndpointAddress]

    init(
        folder: RunFolder,
        security: SocketSecurity,
        localSecurity: SocketSecurity,
        addresses: (EndpointName) throws(HostingError) -> [EndpointAddress]
    ) throws(HostingError) {
        self.folder = folder
        self.security = security
        self.localSecurity = localSecurity
        catalog = try addresses(.catalog)
        thumbnailer = try addresses(.thumbnailer)
        editor = try addresses(.editor)
        broker = try addresses(.broker)
        feed = try addresses(.feed)
        edits = try addresses(.edits)
    }

    /// The address of an endpoint; of several instances of a service, that of the first.
    public subscript(name: EndpointName) -> EndpointAddress { all(name)[0] }

    /// Returns the addresses of an endpoint: one for each instance of its service, at least one.
    public func all(_ name: EndpointName) -> [EndpointAddress] {
        switch name {
        case .catalog: catalog
        case .thumbnailer: thumbnailer
        case .editor: editor
        case .broker: broker
        case .feed: feed
        case .edits: edits
        }
    }

    /// Returns the addresses of some endpoints with their names.
    public func named(_ names: [EndpointName]) -> [(name: EndpointName, address: EndpointAddress)] {
        names.map { ($0, self[$0]) }
    }

    /// Returns the security of a connection to an endpoint: none for `ipc://`, which the run folder protects.
    public func security(of name: EndpointName) -> SocketSecurity { self[name].transport == .tcp ? security : .none }

    /// Returns whether an endpoint's socket is in the run folder.
    public func usesFolder(_ name: EndpointName) -> Bool {
        all(name).contains { $0.path?.hasPrefix(folder.path + "/") ?? false }
    }

    /// Prepares a service: creates and checks the run folder if it is used, and locks each of its addresses.
    ///
    /// - Parameter service: the service whose endpoints are locked.
    /// - Returns: the locks, to be held while serving.
    /// - Throws: ``HostingError``.
    public func claim(for service: ServiceName) throws(HostingError) -> [EndpointLock] {
        let names = EndpointName.allCases.filter { $0.service == service }
        for name in names where all(name).count > 1 {
            throw .badSetting(
                source: name.variable,
                reason: "the \(service.rawValue) listens at one address; lists of addresses are for clients"
            )
        }
        if names.contains(where: usesFolder) { try folder.prepare() }
        var locks: [EndpointLock] = []
        for name in names {
            if let lock = try EndpointLock.acquire(self[name], for: service) { locks.append(lock) }
        }
        return locks
    }

    /// Prepares a client: checks the run folder if it is used.
    ///
    /// Throws ``HostingError``.
    public func checkForCalling(_ names: [EndpointName] = EndpointName.allCases) throws(HostingError) {
        if names.contains(where: usesFolder) { try folder.check() }
    }
}

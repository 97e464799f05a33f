public import ArgumentParser
public import Messaging

/// Where the services are: a flag, a variable and a default for each endpoint.
public struct EndpointOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The folder with the services' sockets.",
            discussion: "SAFELIGHT_RUN, else $XDG_RUNTIME_DIR/safelight, else /tmp/safelight-<uid>."
        )
    )
    public var run: String?

    @Option(help: "Requests to the catalog. (SAFELIGHT_CATALOG, else catalog.sock in the run folder)")
    public var catalog: String?

    @Option(help: "Requests to the thumbnailer. (SAFELIGHT_THUMBNAILER, else thumbnailer.sock in the run folder)")
    public var thumbnailer: String?

    @Option(help: "Requests to the editor. (SAFELIGHT_EDITOR, else editor.sock in the run folder)")
    public var editor: String?

    @Option(help: "Requests to the change-broker. (SAFELIGHT_BROKER, else change-broker.sock in the run folder)")
    public var broker: String?

    @Option(help: "The change feed. (SAFELIGHT_FEED, else feed.sock in the run folder)")
    public var feed: String?

    @Option(help: "Published edits. (SAFELIGHT_EDITS, else edits.sock in the run folder)")
    public var edits: String?

    /// No flags: variables and defaults.
    public init() {}

    /// The addresses that follow; nothing is made or checked on disk.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)`` naming the flag or the variable.
    public func resolve(environment: (String) -> String? = { Environment[$0] }) throws(HostingError) -> Endpoints {
        let folder = RunFolder(flag: run, environment: environment)
        var addresses: [EndpointName: EndpointAddress] = [:]
        for name in EndpointName.allCases {
            let flag = flag(for: name)
            let text = flag ?? environment(name.variable)
            guard let text else {
                addresses[name] = try folder.address(of: name)
                continue
            }
            do throws(MessagingError) {
                addresses[name] = try EndpointAddress(text)
            } catch {
                throw .badSetting(source: flag == nil ? name.variable : "--\(name.flag)", reason: "\(error)")
            }
        }
        return Endpoints(folder: folder, addresses: addresses)
    }

    private func flag(for name: EndpointName) -> String? {
        switch name {
        case .catalog: catalog
        case .thumbnailer: thumbnailer
        case .editor: editor
        case .broker: broker
        case .feed: feed
        case .edits: edits
        }
    }
}

/// The addresses of a house.
public struct Endpoints: Sendable, Equatable {
    /// The folder of the default addresses.
    public let folder: RunFolder
    private let addresses: [EndpointName: EndpointAddress]

    init(folder: RunFolder, addresses: [EndpointName: EndpointAddress]) {
        self.folder = folder
        self.addresses = addresses
    }

    /// The address of an endpoint.
    public subscript(name: EndpointName) -> EndpointAddress {
        guard let address = addresses[name] else { preconditionFailure("every endpoint has an address") }
        return address
    }

    /// Whether an endpoint's socket is in the run folder.
    public func usesFolder(_ name: EndpointName) -> Bool {
        self[name].path?.hasPrefix(folder.path + "/") ?? false
    }

    /// Prepares to serve: makes and checks the run folder where it is used, and locks each address.
    ///
    /// - Parameter service: who serves; all its endpoints are locked.
    /// - Returns: the locks, to be held while serving.
    /// - Throws: ``HostingError``.
    public func claim(for service: ServiceName) throws(HostingError) -> [EndpointLock] {
        let names = EndpointName.allCases.filter { $0.service == service }
        if names.contains(where: usesFolder) { try folder.prepare() }
        var locks: [EndpointLock] = []
        for name in names {
            if let lock = try EndpointLock.take(self[name], for: service) { locks.append(lock) }
        }
        return locks
    }

    /// Prepares to call: checks the run folder where it is used.
    ///
    /// Throws ``HostingError``.
    public func checkForCalling(_ names: [EndpointName] = EndpointName.allCases) throws(HostingError) {
        if names.contains(where: usesFolder) { try folder.check() }
    }
}

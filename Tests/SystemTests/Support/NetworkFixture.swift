import ArgumentParser
import Contracts
import Foundation
import Hosting
import Logging
import PhotoClient
import TestSupport

/// Running services that listen on TCP with CURVE, and their keys.
struct NetworkFixture {
    /// The folder of the keys of services and clients.
    let keys: TemporaryFolder
    let services: SafelightFixture
    /// The catalog's address over TCP.
    let catalog: String
    /// The change-broker's addresses over TCP, for requests and for the feed.
    let broker: [String]
    /// The editor's addresses over TCP, for requests and published edits; empty unless it was started.
    let editor: [String]
    /// The thumbnailer's address over TCP; nil unless it was started.
    let thumbnailer: String?

    init(withEditor: Bool = false, withThumbnailer: Bool = false, environment: [String: String] = [:]) throws {
        let keys = try TemporaryFolder("keys")
        let network = ["SAFELIGHT_LISTEN": "127.0.0.1:0", "SAFELIGHT_KEYS": keys.file("keys")]
        let services = try SafelightFixture("curve", environment: environment.merging(network) { $1 })
        let creation = try services.safelight(["keys", "server"])
        guard creation.status == 0 else { throw FixtureError(description: creation.errors) }
        try services.start(
            [.catalog, .changeBroker] + (withThumbnailer ? [.thumbnailer] : []) + (withEditor ? [.editor] : [])
        )
        func addresses(_ service: SafelightFixture.Service) -> [String] { Self.addresses(service, services) }
        // The log and the readiness line arrive over two pipes, in no particular order.
        _ = services.program(.changeBroker)?.wait { _ in addresses(.changeBroker).count == 2 }
        _ = services.program(.catalog)?.wait { _ in !addresses(.catalog).isEmpty }
        if withThumbnailer { _ = services.program(.thumbnailer)?.wait { _ in !addresses(.thumbnailer).isEmpty } }
        if withEditor { _ = services.program(.editor)?.wait { _ in addresses(.editor).count == 2 } }
        let broker = addresses(.changeBroker)
        guard let catalog = addresses(.catalog).first, broker.count == 2 else {
            throw FixtureError(description: "no addresses over TCP:\n\(services.logs)")
        }
        self.keys = keys
        self.services = services
        self.broker = broker
        self.editor = addresses(.editor)
        self.thumbnailer = addresses(.thumbnailer).first
        self.catalog = catalog
    }

    /// Returns the addresses over TCP that a service has logged since its last start.
    static func addresses(_ service: SafelightFixture.Service, _ services: SafelightFixture) -> [String] {
        (services.program(service)?.errorText ?? "").matches(of: /tcp:\/\/127\.0\.0\.1:[0-9]+/).map {
            String($0.output)
        }
    }

    /// Returns the folder in which `keys create` puts a client's keys.
    func keyFolder(_ name: String) -> String { keys.file("keys/made/\(name)") }

    /// Returns the environment that a client on another machine sets.
    func variables(_ name: String) -> [String: String] {
        [
            "SAFELIGHT_CATALOG": catalog, "SAFELIGHT_BROKER": broker[0], "SAFELIGHT_FEED": broker[1],
            "SAFELIGHT_HOST": "127.0.0.1:1", "SAFELIGHT_SERVER_KEY": keyFolder(name) + "/server.key",
            "SAFELIGHT_CLIENT_KEY": keyFolder(name) + "/\(name).key_secret",
        ]
    }

    func library(_ name: String) throws -> PhotoLibrary { try Self.library(variables: variables(name)) }

    /// Connects as the client that has these variables in its environment.
    static func library(variables: [String: String]) throws -> PhotoLibrary {
        let endpoints = try EndpointOptions.parse([]).resolve { variables[$0] }
        var addresses = ServiceEndpoints(
            catalog: endpoints[.catalog],
            thumbnailer: endpoints[.thumbnailer],
            editor: endpoints[.editor],
            changeBroker: endpoints[.broker],
            feed: endpoints[.feed],
            edits: endpoints[.edits],
            security: endpoints.security
        )
        addresses.thumbnailers = endpoints.all(.thumbnailer)
        addresses.editors = endpoints.all(.editor)
        addresses.edits = endpoints.all(.edits)
        return try PhotoLibrary(
            endpoints: addresses,
            client: "test",
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
    }
}

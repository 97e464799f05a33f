import ArgumentParser
import Contracts
import Hosting
import Messaging
import PhotoClient

/// The options of every command that connects to the services.
struct ClientOptions: ParsableArguments {
    @Flag(help: "Print JSON: one value, or one value per line.")
    var json = false

    @Option(help: ArgumentHelp("Time to wait for a service that does not respond yet.", valueName: "seconds"))
    var wait: Double?

    @OptionGroup
    var endpoints: EndpointOptions

    /// The default of `--wait` in seconds: long enough for a service that is being restarted.
    static let defaultWait = 3.0

    func validate() throws {
        guard let wait else { return }
        guard wait.isFinite, (0...3600).contains(wait) else {
            throw ValidationError("--wait must be a number of seconds from 0 to 3600")
        }
    }

    /// Returns the addresses of the services, after a check that it is safe to connect to them.
    ///
    /// Without a run folder no service is running: that is an error, unless `--wait` is given.
    func serviceEndpoints() throws -> ServiceEndpoints {
        let endpoints = try endpoints.resolve()
        do throws(HostingError) {
            try endpoints.checkForCalling()
        } catch {
            guard case .noRunFolder = error, wait != nil else { throw error }
            try endpoints.folder.prepare()
        }
        var addresses = ServiceEndpoints(
            catalog: endpoints[.catalog],
            thumbnailer: endpoints[.thumbnailer],
            editor: endpoints[.editor],
            changeBroker: endpoints[.broker],
            feed: endpoints[.feed],
            edits: endpoints[.edits],
            security: endpoints.security
        )
        addresses.catalogs = endpoints.all(.catalog)
        addresses.thumbnailers = endpoints.all(.thumbnailer)
        addresses.editors = endpoints.all(.editor)
        addresses.edits = endpoints.all(.edits)
        return addresses
    }
}

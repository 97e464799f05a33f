public import ArgumentParser
import Contracts
public import Hosting
import JSONValue

/// `safelight describe`
struct DescribeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "describe",
        abstract: "Print the protocol of a service as an OpenRPC document.",
        discussion: "What rpc.discover of the running service answers: every method, parameter, result and error."
    )

    @Argument(help: "catalog, thumbnailer, editor or change-broker.")
    var service: ServiceName

    func run() throws {
        let document = openRPCDocument(
            service: service.rawValue,
            version: ServiceVersion.current,
            methods: service.methods
        )
        try Output(json: true).line(document.prettyText)
    }
}

extension ServiceName: ExpressibleByArgument {}

extension ServiceName {
    /// What the service answers.
    var methods: [MethodDescription] {
        switch self {
        case .catalog: CatalogRequest.methods
        case .thumbnailer: ThumbnailerRequest.methods
        case .editor: EditorRequest.methods
        case .changeBroker: ChangeBrokerRequest.methods
        }
    }
}

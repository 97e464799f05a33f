public import ArgumentParser
import Contracts
import Foundation
public import Hosting
import JSONValue
import PhotoModel

/// `safelight describe`
struct DescribeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "describe",
        abstract: "Print the protocol of a service, the adjustment format, or an edit as a file for other programs.",
        subcommands: [DescribeFormatCommand.self, DescribeEditCommand.self],
        defaultSubcommand: DescribeFormatCommand.self
    )
}

extension ServiceName: ExpressibleByArgument {}

extension ServiceName {
    /// The descriptions of the methods that the service implements.
    var methods: [MethodDescription] {
        switch self {
        case .catalog: CatalogRequest.methods
        case .thumbnailer: ThumbnailerRequest.methods
        case .editor: EditorRequest.methods + EditorRequest.notifications
        case .changeBroker: ChangeBrokerRequest.methods
        }
    }
}

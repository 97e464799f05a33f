import ArgumentParser
import Contracts
import Foundation
import Hosting
import JSONValue
import PhotoModel

/// `safelight describe catalog`, and the other services and formats
struct DescribeFormatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "format",
        abstract: "Print the protocol of a service as an OpenRPC document, or the adjustment format.",
        discussion: """
            The document lists every method, parameter, result and error; the running service returns the same for \
            rpc.discover. "adjustments" prints the JSON Schema of the editor's format: every operation with its \
            meaning, range, unit, default and neutral value.
            """
    )

    @Argument(help: "catalog, thumbnailer, editor, change-broker or adjustments.")
    var subject: String

    @Flag(help: "Has no effect: all formats are JSON.")
    var json = false

    /// For `make docs`: prints the reference page of all services instead, with the executed requests of a file.
    @Option(help: .hidden)
    var examples: String?

    func validate() throws {
        if subject == "protocol", examples != nil { return }
        guard subject == "adjustments" || ServiceName(rawValue: subject) != nil else {
            throw ValidationError("the argument is one of catalog, thumbnailer, editor, change-broker or adjustments")
        }
    }

    func run() throws {
        if subject == "protocol", let examples {
            let executed = try JSON(parsing: String(contentsOfFile: examples, encoding: .utf8))
            return print(ProtocolPage.markdown(examples: executed), terminator: "")
        }
        guard let service = ServiceName(rawValue: subject) else {
            return try Output(json: true).line(AdjustmentList.schema.prettyText)
        }
        let document = openRPCDocument(
            service: service.rawValue,
            version: ServiceVersion.current,
            methods: service.methods
        )
        try Output(json: true).line(document.prettyText)
    }
}

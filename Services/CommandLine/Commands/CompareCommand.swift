import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight compare`
struct CompareCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "compare",
        abstract: "Save the original and the edited version side by side in one image."
    )

    @Argument(help: "Asset identifier.")
    var id: String

    @Option(name: .shortAndLong, help: "Output file; - for standard output.")
    var output = "compare.jpg"

    @Option(help: "Longer side of each image in pixels, 16 to 2048.")
    var size = 1024

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.editor] }

    func check() throws {
        _ = try Identifiers.one(id)
        guard (16...2048).contains(size) else { throw CommandFailure.usage("--size must be a number from 16 to 2048") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let request = CompareEdit(asset: try Identifiers.one(id), maximumSide: size)
        try EditedImageOutput.save(
            try await library.editor.ask(request, deadline: .seconds(120)),
            to: self.output,
            output
        )
    }
}

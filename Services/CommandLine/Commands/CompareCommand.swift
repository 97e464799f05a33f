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

    @Argument(help: "Asset: its identifier, its file name, or @3 of the last listing.", completion: Completions.assets)
    var id: String

    @Option(name: .shortAndLong, help: "Output file, a JPEG; - for standard output.")
    var output = "compare.jpg"

    @Option(help: "Longer side of each image in pixels, 16 to 2048.")
    var size = 1024

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.editor] }

    func check() throws {
        guard (16...2048).contains(size) else { throw CommandFailure.usage("--size must be a number from 16 to 2048") }
        try OutputFile.requireJPEG(output)
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let asset = try await AssetArguments.readOne(id, in: library)
        var request = CompareEdit(asset: asset, maximumSide: size, hasLabels: true)
        request.isNetworkAccessAllowed = downloads.download
        try EditedImageOutput.save(
            try await library.editor.ask(request, deadline: .seconds(120), downloads, output),
            to: self.output,
            output
        )
    }
}

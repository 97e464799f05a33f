public import ArgumentParser
public import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight describe edit`
struct DescribeEditCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit",
        abstract: "Print the edit of an asset as a file for other programs.",
        discussion: """
            "cube" and "hald" are the colour operations as a look-up table: a .cube file of 33 points, or a HALD CLUT of \
            level 8 (PNG). "convert" is the whole edit as a shell script for ImageMagick 6, called with the names of an \
            input and an output: safelight describe edit ID --as convert > edit.sh; sh edit.sh original.jpg edited.jpg
            """
    )

    @Argument(help: "Asset: its identifier, its file name, or @3 of the last listing.", completion: Completions.assets)
    var id: String

    @Option(name: .customLong("as"), help: "cube, hald or convert.")
    var form: DescribeEdit.Form

    @Option(
        name: .customLong("list"),
        help: ArgumentHelp("Describe an adjustment list instead of the asset's edit.", valueName: "file")
    )
    var listFile: String?

    @Option(name: .shortAndLong, help: "Output file; - for standard output.")
    var output = "-"

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.editor] }

    func run(in library: PhotoLibrary, output: Output) async throws {
        var request = DescribeEdit(
            asset: try await AssetArguments.readOne(id, in: library),
            adjustments: try listFile.map(AdjustmentOptions.read),
            as: form
        )
        request.isNetworkAccessAllowed = downloads.download
        let response = try await library.editor.ask(request, deadline: .seconds(120), downloads, output)
        guard let file = response.attachments.first else {
            throw CommandFailure(message: "the editor returned no file", name: ErrorCode.internalError.rawValue)
        }
        try OutputFile.write(file, to: self.output)
        guard self.output != "-" else { return }
        try output.result(response.result.json) { ["\(self.output.printable): \(file.count) bytes"] }
    }
}

extension DescribeEdit.Form: ExpressibleByArgument {}

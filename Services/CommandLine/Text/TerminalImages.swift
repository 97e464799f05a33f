import Contracts
import PhotoClient
import PhotoModel
import SystemPackage

/// Shows images of assets in a terminal.
struct TerminalImages {
    private let graphics: TerminalGraphics
    private let size: (width: Int, height: Int)

    /// - Parameter graphics: the protocol; nil to ask the terminal
    ///
    /// - Throws: ``CommandFailure`` if the terminal shows no images, or if standard output is not a terminal and no
    ///   protocol is given
    init(_ graphics: TerminalGraphics?, _ output: Output) throws {
        let terminal = Terminal()
        if let graphics {
            self.graphics = graphics
        } else {
            guard output.isTerminal else {
                throw CommandFailure.usage("images are shown in a terminal; --graphics writes them elsewhere too")
            }
            guard let found = terminal?.graphics() else {
                throw CommandFailure(
                    message:
                        "this terminal shows no images: it understands neither kitty's protocol, nor iTerm2's, nor "
                        + "Sixel; `safelight thumb` saves an image",
                    name: "no_graphics"
                )
            }
            self.graphics = found
        }
        size = terminal?.imageSize() ?? (640, 360)
    }

    /// Shows an asset's current version, as large as fits.
    func show(_ asset: Asset, in library: PhotoLibrary) async throws {
        var request = ImageRequest(
            asset: asset.id,
            targetSize: .size(width: size.width, height: size.height),
            resizeMode: .exact,
            deliveryMode: .highQualityFormat,
            format: .png
        )
        request.keepSize(of: asset)
        let (_, image) = try await library.image(request)
        try Output.write(try graphics.sequence(png: image), to: .standardOutput)
    }
}

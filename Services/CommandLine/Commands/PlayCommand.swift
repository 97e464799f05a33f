import ArgumentParser
import Contracts
import Glibc
import Hosting
import PhotoClient
import PhotoModel

/// `safelight play`
struct PlayCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "play",
        abstract: "Play a video with a player on this machine.",
        discussion: "The video is piped to the player's standard input: by default mpv, ffplay or vlc."
    )

    @Argument(help: "Asset: its identifier, its file name, or @3 of the last listing.", completion: Completions.assets)
    var id: String

    @Option(help: "Shell command of the player, which reads the video from standard input.")
    var player: String?

    @Flag(help: "Use the original, without edits.")
    var original = false

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.thumbnailer] }

    private static let players = [
        ("mpv", "mpv --really-quiet -"), ("ffplay", "ffplay -loglevel error -autoexit -"), ("vlc", "vlc -"),
    ]

    func run(in library: PhotoLibrary, output: Output) async throws {
        let asset = try await AssetArguments.readOne(id, in: library)
        var request = VideoPlayback(asset: asset, version: original ? .original : .current)
        request.isNetworkAccessAllowed = downloads.download
        let video = try await library.thumbnailer.ask(request, deadline: .seconds(120), downloads, output).result
        guard let command = player ?? Self.installedPlayer else {
            throw CommandFailure(
                message: "no player is installed; install mpv, or name one with --player",
                name: "no_player"
            )
        }
        // A player may be closed before the end.
        signal(SIGPIPE, SIG_IGN)
        guard let pipe = popen(command, "we") else {
            throw CommandFailure(message: "the player cannot be started: \(command.printable)", name: "no_player")
        }
        let failure: (any Error)?
        do {
            try await library.readStream(video) { bytes in fwrite(bytes, 1, bytes.count, pipe) == bytes.count }
            failure = nil
        } catch { failure = error }
        let status = pclose(pipe)
        if let failure { throw failure }
        guard status & 0x7F == 0, status >> 8 & 0xFF != 127 else {
            throw CommandFailure(message: "the player failed: \(command.printable)", name: "no_player")
        }
    }

    /// The command of the first player that is installed.
    private static var installedPlayer: String? {
        let folders = (Environment["PATH"] ?? "/usr/bin").split(separator: ":")
        return players.first { name, _ in folders.contains { access("\($0)/\(name)", X_OK) == 0 } }?.1
    }
}

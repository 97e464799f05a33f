import ArgumentParser

/// `catalog generate`: a library of any size, without pixels.
struct GenerateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "generate", abstract: "Makes a library with plausible facts and no pixels, for measuring.")

    func run() async throws {}
}

import ArgumentParser
import Contracts
import Glibc
import PhotoClient
import PhotoModel
import SystemPackage

/// `safelight delete`
struct DeleteCommand: LibraryCommand {
    static let configuration = CommandConfiguration(commandName: "delete", abstract: "Delete assets.")

    @OptionGroup var assets: AssetArguments

    @Flag(name: .shortAndLong, help: "Do not ask for confirmation.")
    var yes = false

    @OptionGroup var client: ClientOptions

    var reportsAtSignals: Bool { true }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try await assets.read(in: library)
        try Confirmation.ask("Delete \(QuantityFormatter.count(ids.count, "asset"))?", isGiven: yes)
        try await BatchedChanges.perform(ids, in: library, output, "deleted") { [.deleteAssets(.init(ids: $0))] }
    }
}

/// The question before something that cannot be undone.
enum Confirmation {
    /// Asks on the terminal; returns at once if `--yes` was given.
    ///
    /// - Throws: ``CommandFailure`` if the answer is no, or if there is no terminal
    static func ask(_ question: String, isGiven: Bool) throws {
        if isGiven { return }
        guard isatty(0) == 1, isatty(2) == 1 else {
            throw CommandFailure.usage("\(question) Without a terminal, confirm with --yes")
        }
        try? Output.write("\(question) [y/N] ", to: .standardError)
        guard let answer = readLine()?.lowercased(), answer == "y" || answer == "yes" else {
            throw CommandFailure(message: "cancelled; nothing was changed", name: ErrorCode.userCancelled.rawValue)
        }
    }
}

import ArgumentParser
import Contracts
import Glibc
import PhotoClient
import PhotoModel
import SystemPackage

/// `safelight delete`
struct DeleteCommand: LibraryCommand {
    static let configuration = CommandConfiguration(commandName: "delete", abstract: "Delete assets.")

    @OptionGroup var assets: Identifiers

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try assets.read()
        try Confirmation.ask("Delete \(Quantities.count(ids.count, "asset"))?", isGiven: yes)
        try await Transactions.perform(ids, in: library, output, "deleted") { [.deleteAssets(.init(ids: $0))] }
    }
}

/// Asking before something cannot be undone.
enum Confirmation {
    static func ask(_ question: String, isGiven: Bool) throws {
        if isGiven { return }
        guard isatty(0) == 1, isatty(2) == 1 else {
            throw CommandFailure.usage("\(question) Say so with --yes where nobody can be asked")
        }
        try? Output.write("\(question) [y/N] ", to: .standardError)
        guard let answer = readLine()?.lowercased(), answer == "y" || answer == "yes" else {
            throw CommandFailure(message: "nothing was done", name: Refusal.userCancelled.rawValue)
        }
    }
}

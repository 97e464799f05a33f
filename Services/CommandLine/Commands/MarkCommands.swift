import ArgumentParser
import Contracts
import Glibc
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight favorite`
struct FavoriteCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "favorite", abstract: "Mark assets as favorites, or no longer.")

    @Argument(help: "Identifiers, or - for standard input.")
    var ids: [String]

    @Flag(help: "No longer a favorite.")
    var off = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try Identifiers.read(ids)
        let patch = AssetPatch(isFavorite: !off)
        try await Transactions.perform(ids, in: library, output, off ? "no longer favorites" : "favorites") { ids in
            ids.map { .updateAsset(.init(id: .id($0), set: patch)) }
        }
    }
}

/// `safelight hide`
struct HideCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "hide", abstract: "Leave assets out of usual fetches, or show them again.")

    @Argument(help: "Identifiers, or - for standard input.")
    var ids: [String]

    @Flag(help: "Show them again.")
    var off = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try Identifiers.read(ids)
        let patch = AssetPatch(isHidden: !off)
        try await Transactions.perform(ids, in: library, output, off ? "shown again" : "hidden") { ids in
            ids.map { .updateAsset(.init(id: .id($0), set: patch)) }
        }
    }
}

/// `safelight delete`
struct DeleteCommand: LibraryCommand {
    static let configuration = CommandConfiguration(commandName: "delete", abstract: "Delete assets.")

    @Argument(help: "Identifiers, or - for standard input.")
    var ids: [String]

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try Identifiers.read(ids)
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

/// The same done to many assets, in as many transactions as it takes.
enum Transactions {
    static func perform(
        _ ids: [ObjectID],
        in library: PhotoLibrary,
        _ output: Output,
        _ words: String,
        requests: ([ObjectID]) -> [ChangeRequest]
    ) async throws {
        let pieces = ids.transactions
        if pieces.count > 1 { output.note("\(ids.count) assets are more than a transaction may touch: \(pieces.count)") }
        for piece in pieces {
            let result = try await library.perform(requests(Array(piece)))
            var json = result.json.objectValue ?? [:]
            json["assets"] = JSON(piece.count)
            try output.result(.object(json)) {
                result.isChanged
                    ? ["\(Quantities.count(piece.count, "asset")) \(words), change #\(result.sequence)"]
                    : ["nothing to change"]
            }
        }
    }
}

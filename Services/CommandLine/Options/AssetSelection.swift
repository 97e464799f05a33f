import ArgumentParser
import PhotoClient
import PhotoModel

/// The assets that a command changes: identifiers, or all assets of a fetch.
struct AssetSelection: ParsableArguments {
    @Argument(
        help: """
            Assets: identifiers, file names, @3 of the last listing, or - to read them from standard input; none with \
            --where and the other options.
            """,
        completion: Completions.assets
    )
    var ids: [String] = []

    @OptionGroup var fetch: FetchOptions

    func validate() throws {
        guard ids.isEmpty != fetch.isEmpty else {
            throw ValidationError("give identifiers, or a fetch with --where, --album and the other options")
        }
    }

    /// Checks the fetch. Its errors have names of their own, which they would lose in ``validate()``.
    func check() throws { _ = try fetch.fetch(of: nil) }

    /// Returns the identifiers that were given, or those of the fetch, read before anything is changed.
    func read(in library: PhotoLibrary) async throws -> [ObjectID] {
        guard ids.isEmpty else { return try await AssetArguments.read(ids, in: library) }
        return try await library.assetIDs(try await fetch.fetch(in: library))
    }
}

/// A command with an ``AssetSelection``.
protocol SelectionCommand: LibraryCommand {
    var assets: AssetSelection { get }
}

extension SelectionCommand {
    var reportsAtSignals: Bool { true }

    func check() throws { try assets.check() }
}

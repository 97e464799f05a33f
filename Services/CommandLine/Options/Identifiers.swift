import ArgumentParser
import PhotoClient
import PhotoModel

/// Assets as arguments, or `-` to read them from standard input, one per line.
struct Identifiers: ParsableArguments {
    @Argument(
        help: "Assets: identifiers, file names, @3 of the last listing, or - to read them from standard input.",
        completion: Completions.assets
    )
    var ids: [String]

    /// Returns the identifiers of the assets that were given.
    func read(in library: PhotoLibrary) async throws -> [ObjectID] { try await Self.read(ids, in: library) }

    /// The maximum number of identifiers.
    static let limit = 1_000_000

    /// Looks up assets in the given order and without duplicates.
    ///
    /// - Parameter input: returns the next line of standard input, or nil at its end
    static func read(
        _ arguments: [String],
        in library: PhotoLibrary,
        input: () -> String? = { readLine() }
    ) async throws -> [ObjectID] {
        let assets = AssetReference(in: library)
        var ids: [ObjectID] = []
        for argument in arguments {
            if argument == "-" {
                while let line = input() {
                    if let text = reference(inLine: line) { ids += try await assets.ids(text) }
                    guard ids.count <= limit else { throw CommandFailure.usage("more than \(limit) identifiers") }
                }
            } else {
                ids += try await assets.ids(argument)
            }
        }
        return IDList(ids).ids
    }

    /// Returns the first identifier of a line, such as one of `safelight fetch`, else its first word.
    static func reference(inLine line: String) -> String? {
        let words = line.split(separator: " ")
        return (words.first { ObjectID(String($0)) != nil } ?? words.first).map { String($0) }
    }

    /// Looks up the only asset that an argument names.
    static func one(_ text: String, in library: PhotoLibrary) async throws -> ObjectID {
        let ids = try await AssetReference(in: library).ids(text)
        guard let id = ids.first, ids.count == 1 else {
            throw CommandFailure.usage("\"\(text.prefix(40))\" are \(ids.count) assets; this command takes one")
        }
        return id
    }
}

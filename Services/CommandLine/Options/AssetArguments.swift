import ArgumentParser
import PhotoClient
import PhotoModel

/// Assets as arguments, or `-` to read them from standard input, one per line.
struct AssetArguments: ParsableArguments {
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
    /// - Parameter input: returns the next line of standard input, or nil at its end; nil to read it
    static func read(
        _ arguments: [String],
        in library: PhotoLibrary,
        input: (() throws -> String?)? = nil
    ) async throws -> [ObjectID] {
        let standardInput = StandardInput()
        let next = input ?? { try standardInput.line() }
        let assets = AssetLookup(in: library)
        var ids: [ObjectID] = []
        var texts: [String] = []
        func lookUp() async throws {
            ids += try await assets.ids(texts)
            texts = []
            guard ids.count <= limit else { throw CommandFailure.usage("more than \(limit) identifiers") }
        }
        for argument in arguments {
            if argument == "-" {
                while let line = try next() {
                    guard let text = reference(inLine: line) else { continue }
                    texts.append(text)
                    if texts.count == AssetLookup.batchSize { try await lookUp() }
                }
            } else {
                texts.append(argument)
                if texts.count == AssetLookup.batchSize { try await lookUp() }
            }
        }
        try await lookUp()
        return IDList(ids).ids
    }

    /// Returns the identifier in a row of `safelight fetch`, else the whole line without the space around it, because a
    /// file name may have spaces; nil for an empty line and for the heading of `safelight fetch`.
    static func reference(inLine line: String) -> String? {
        let words = line.split(whereSeparator: \.isWhitespace)
        if words.count > 1, words[0].wholeMatch(of: /@[0-9]+/) != nil, ObjectID(String(words[1])) != nil {
            return String(words[1])
        }
        guard let first = words.first, let last = words.last, words != FetchCommand.titles else { return nil }
        return String(line[first.startIndex..<last.endIndex])
    }

    /// Looks up the only asset that an argument names.
    static func readOne(_ text: String, in library: PhotoLibrary) async throws -> ObjectID {
        let ids = try await AssetLookup(in: library).ids(text)
        guard let id = ids.first, ids.count == 1 else {
            throw CommandFailure.usage("\"\(text.prefix(40))\" names \(ids.count) assets; this command takes one")
        }
        return id
    }
}

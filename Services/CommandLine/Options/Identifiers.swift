import ArgumentParser
import PhotoModel

/// Asset identifiers as arguments, or `-` to read them from standard input, one per line.
struct Identifiers: ParsableArguments {
    @Argument(help: "Asset identifiers, or - to read them from standard input.")
    var ids: [String]

    /// Returns the identifiers that were given.
    func read() throws -> [ObjectID] { try Self.read(ids) }

    /// The maximum number of identifiers.
    static let limit = 1_000_000

    /// Reads identifiers of one kind, in the given order and without duplicates.
    ///
    /// - Parameter input: returns the next line of standard input, or nil at its end
    static func read(
        _ arguments: [String],
        _ kind: ObjectKind = .asset,
        input: () -> String? = { readLine() }
    ) throws -> [ObjectID] {
        var ids: [ObjectID] = []
        for argument in arguments {
            if argument == "-" {
                while let line = input() {
                    let text = line.split(separator: " ").first ?? ""
                    if !text.isEmpty { ids.append(try one(String(text), kind)) }
                    guard ids.count <= limit else { throw CommandFailure.usage("more than \(limit) identifiers") }
                }
            } else {
                ids.append(try one(argument, kind))
            }
        }
        return IDList(ids).ids
    }

    static func one(_ text: String, _ kind: ObjectKind = .asset) throws -> ObjectID {
        guard let id = ObjectID(text) else {
            throw CommandFailure.usage(
                "\"\(text.prefix(80))\" is not an identifier; use one as printed by `safelight \(kind.listing)`"
            )
        }
        guard id.kind == kind else { throw CommandFailure.usage("\(id) is an identifier of another kind") }
        return id
    }
}

extension ObjectKind {
    fileprivate var listing: String {
        switch self {
        case .asset: "fetch"
        case .assetCollection, .collectionList: "album list"
        }
    }
}

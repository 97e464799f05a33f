import ArgumentParser
import PhotoModel

/// Identifiers as they are typed: whole, or `-` for one on each line of standard input.
struct Identifiers: ParsableArguments {
    @Argument(help: "Identifiers, or - for standard input.")
    var ids: [String]

    /// The assets that were named.
    func read() throws -> [ObjectID] { try Self.read(ids) }

    /// More than this are refused.
    static let limit = 1_000_000

    /// Reads identifiers of one kind, each once, in the order given.
    ///
    /// - Parameter input: the next line of standard input; nil at its end
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
                "\"\(text.prefix(80))\" is no identifier; give it whole, as `safelight \(kind.listing)` prints it"
            )
        }
        guard id.kind == kind else { throw CommandFailure.usage("\(id) is the identifier of another kind of thing") }
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

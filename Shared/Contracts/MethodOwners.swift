import JSONValue

/// The services that have each method, for errors that name the right service.
enum MethodOwners {
    private static let services: [(name: String, methods: [String])] = [
        ("catalog", CatalogRequest.methods.map(\.name)),
        ("thumbnailer", ThumbnailerRequest.methods.map(\.name)),
        ("editor", EditorRequest.methods.map(\.name)),
        ("change-broker", ChangeBrokerRequest.methods.map(\.name)),
    ]

    private static func owners(of method: String) -> [String] {
        services.filter { $0.methods.contains(method) }.map(\.name)
    }

    /// Returns the error of a service that lacks a method: it names the services that have it, or else methods with a
    /// similar name.
    ///
    /// - Parameter methods: the methods of the service
    static func methodNotFound(_ method: String, methods: [String]) -> RPCError {
        let name = String(method.prefix(64))
        var data: JSONObject = ["methods": JSON(methods)]
        let owners = owners(of: method)
        guard owners.isEmpty else {
            data["services"] = JSON(owners)
            let sockets = owners.map { "the \($0) (\($0).sock)" }.joined(separator: " or ")
            return ErrorCode.methodNotFound.error(
                "this service has no method \(name); send it to \(sockets)",
                data
            )
        }
        if method == PublishEdit.method {
            return ErrorCode.methodNotFound.error(
                "\(name) is a notification: push it to the editor's endpoint for edits (edits.sock)",
                data
            )
        }
        let similar = services.flatMap(\.methods).filter { candidate in
            candidate.hasPrefix(method) || method.hasPrefix(candidate) || isSimilar(candidate, name)
        }
        let names = Set(similar).sorted()
        if !names.isEmpty { data["similar"] = JSON(names) }
        return ErrorCode.methodNotFound.error(
            "no service has a method \(name)"
                + (names.isEmpty ? "" : "; did you mean \(names.joined(separator: " or "))?")
                + "; rpc.discover lists the methods of this service",
            data
        )
    }

    /// Returns true if at most two insertions, deletions or replacements of a character lead from one name to the
    /// other, ignoring case.
    private static func isSimilar(_ name: String, _ other: String) -> Bool {
        let (name, other) = (Array(name.lowercased().utf8), Array(other.lowercased().utf8))
        guard abs(name.count - other.count) <= 2 else { return false }
        var row = Array(0...other.count)
        for (index, byte) in name.enumerated() {
            var (diagonal, left) = (row[0], index + 1)
            row[0] = left
            for column in other.indices {
                let next = min(diagonal + (byte == other[column] ? 0 : 1), left + 1, row[column + 1] + 1)
                (diagonal, left) = (row[column + 1], next)
                row[column + 1] = next
            }
        }
        return row[other.count] <= 2
    }
}

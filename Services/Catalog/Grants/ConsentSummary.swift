import JSONValue
import PhotoModel

/// The effects of a transaction, as they are shown to the owner (S-13).
struct ConsentSummary {
    /// The number of objects for each type of request that names them.
    private(set) var counts: [(name: String, count: Int)] = []
    private(set) var objects: [ObjectID] = []
    /// True if one of the requests is destructive.
    private(set) var isDestructive = false

    init(_ requests: [ChangeRequest]) {
        for request in requests where !request.isBookkeeping {
            let changed = request.changedObjects
            objects += changed.prefix(max(0, ConsentQuestion.maxObjects - objects.count))
            isDestructive = isDestructive || request.isDestructive
            let count = max(1, changed.count)
            if let index = counts.firstIndex(where: { $0.name == request.name }) {
                counts[index].count += count
            } else {
                counts.append((request.name, count))
            }
        }
    }

    /// Returns true if the owner has to consent to the transaction.
    func needsConsent(_ policy: ConsentPolicy) -> Bool {
        switch policy {
        case .never: false
        case .destructive: isDestructive
        case .always: !counts.isEmpty
        }
    }

    /// The counts and the first objects, for example `asset.delete 3, asset.update 1: a01h…, a01j… and 2 more`.
    var text: String {
        let total = counts.reduce(0) { $0 + $1.count }
        let shown = objects.prefix(5).map(\.text)
        let words = counts.map { "\($0.name) \($0.count)" }.joined(separator: ", ")
        guard !shown.isEmpty else { return words }
        let rest = total > shown.count ? " and \(total - shown.count) more" : ""
        return "\(words): \(shown.joined(separator: ", "))\(rest)"
    }

    var json: JSONObject {
        var object = JSONObject()
        for entry in counts { object[entry.name] = JSON(entry.count) }
        return object
    }
}

extension ChangeRequest {
    /// True for the records of services about published edits, which change nothing that users see.
    fileprivate var isBookkeeping: Bool {
        switch self {
        case .acceptEdit, .failEdit: true
        default: false
        }
    }
}

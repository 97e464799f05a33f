import JSONValue
import PhotoModel

/// The effects of a transaction, as the owner reads them (S-13).
struct ConsentSummary {
    /// Objects by the type of the request that names them.
    private(set) var counts: [(name: String, count: Int)] = []
    private(set) var objects: [ObjectID] = []
    /// True if something that exists would be deleted, trashed, edited or reverted.
    private(set) var isDestructive = false

    init(_ requests: [ChangeRequest]) {
        for request in requests where !request.isBookkeeping {
            let named = request.objects
            objects += named.prefix(max(0, ConsentQuestion.maxObjects - objects.count))
            isDestructive = isDestructive || request.isDestructive
            let count = max(1, named.count)
            if let index = counts.firstIndex(where: { $0.name == request.name }) {
                counts[index].count += count
            } else {
                counts.append((request.name, count))
            }
        }
    }

    /// Returns the summary if the owner has to consent to a transaction; else nil, which costs nothing for most
    /// clients.
    init?(_ requests: [ChangeRequest], askedBy policy: ConsentPolicy) {
        guard policy != .never else { return nil }
        self.init(requests)
        guard needsConsent(policy) else { return nil }
    }

    /// Returns true if the owner has to consent.
    func needsConsent(_ policy: ConsentPolicy) -> Bool {
        switch policy {
        case .never: false
        case .destructive: isDestructive
        case .always: !counts.isEmpty
        }
    }

    /// For example `asset.delete 3, asset.update 1: a01h…, a01j… and 2 more`.
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

    fileprivate var isDestructive: Bool {
        switch self {
        case .deleteAssets, .trashAssets, .editAsset, .revertAsset, .deleteCollections, .deleteLists: true
        case .updateCollection(let request): !request.remove.isEmpty || request.edits.contains(where: \.removes)
        case .updateList(let request): request.edits.contains(where: \.removes)
        case .createAsset, .updateAsset, .createCollection, .restoreAssets, .createList, .acceptEdit, .failEdit: false
        }
    }

    /// The existing objects that the request changes.
    fileprivate var objects: [ObjectID] {
        switch self {
        case .updateAsset(let request): request.id.existing
        case .deleteAssets(let request), .deleteCollections(let request), .deleteLists(let request),
            .trashAssets(let request), .restoreAssets(let request):
            request.ids
        case .editAsset(let request): [request.id]
        case .revertAsset(let request): [request.id]
        case .updateCollection(let request): request.id.existing
        case .updateList(let request): request.id.existing
        case .createAsset, .createCollection, .createList, .acceptEdit, .failEdit: []
        }
    }
}

extension ObjectReference {
    fileprivate var existing: [ObjectID] {
        if case .id(let id) = self { return [id] }
        return []
    }
}

extension MemberEdit {
    fileprivate var removes: Bool {
        switch self {
        case .remove, .removeAt, .replace: true
        case .add, .insert, .move: false
        }
    }
}

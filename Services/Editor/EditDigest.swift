import Contracts
import JSONValue
import PhotoModel
import Storage

/// The digest of a client's request, without its client name and transaction id, and without the permission to
/// download.
///
/// The editor's own transactions differ between attempts, because each is conditional on the revision it was rendered
/// from. When a transaction id is repeated, the catalog therefore compares this digest.
enum EditDigest {
    static func of(_ edit: ApplyEdit) -> String {
        var normalized = edit
        normalized.isNetworkAccessAllowed = false
        normalized.client = ""
        normalized.transaction = nil
        return digest(ApplyEdit.method, ApplyEdit.table.encode(normalized))
    }

    /// Returns the digest of an edit of one asset with suggested operations. The suggestions are left out, because they
    /// depend on the current image.
    static func of(enhancing edits: ApplyEdits, _ asset: ObjectID) -> String {
        var normalized = edits
        normalized.asset = asset
        normalized.assets = []
        normalized.fetch = nil
        normalized.priority = .normal
        normalized.isDryRun = false
        normalized.isNetworkAccessAllowed = false
        normalized.client = ""
        normalized.transaction = nil
        return digest(ApplyEdits.method, ApplyEdits.table.encode(normalized))
    }

    /// Returns the digest of a copy to one asset. It includes the id of the source, not its current adjustments.
    static func of(_ copy: CopyEdits, _ asset: ObjectID) -> String {
        var normalized = copy
        normalized.to = [asset]
        normalized.fetch = nil
        normalized.priority = .normal
        normalized.isNetworkAccessAllowed = false
        normalized.client = ""
        normalized.transaction = nil
        return digest(CopyEdits.method, CopyEdits.table.encode(normalized))
    }

    static func of(_ revert: RevertEdit) -> String {
        var normalized = revert
        normalized.client = ""
        normalized.transaction = nil
        return digest(RevertEdit.method, RevertEdit.table.encode(normalized))
    }

    static func of(_ undo: UndoEdits) -> String {
        var normalized = undo
        normalized.isNetworkAccessAllowed = false
        normalized.client = ""
        normalized.transaction = nil
        return digest(UndoEdits.method, UndoEdits.table.encode(normalized))
    }

    /// Returns the digest of a published edit: of its parameters as received, in canonical form, so that publishers can
    /// compute it too.
    static func of(published params: JSON) -> String { ResourceDigest(of: params.canonical.bytes).text }

    /// Returns a digest as 64 hexadecimal digits.
    private static func digest(_ method: String, _ params: JSONObject) -> String {
        let request: JSON = ["method": .string(method), "params": .object(params)]
        return ResourceDigest(of: request.bytes).text
    }
}

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
        var named = edit
        named.isNetworkAccessAllowed = false
        named.client = ""
        named.transaction = nil
        return digest(ApplyEdit.method, ApplyEdit.table.encode(named))
    }

    /// Returns the digest of an edit of one asset with suggested operations. The suggestions are left out, because they
    /// depend on the present image.
    static func of(enhancing edits: ApplyEdits, _ asset: ObjectID) -> String {
        var named = edits
        named.asset = asset
        named.assets = []
        named.fetch = nil
        named.priority = .normal
        named.dryRun = false
        named.isNetworkAccessAllowed = false
        named.client = ""
        named.transaction = nil
        return digest(ApplyEdits.method, ApplyEdits.table.encode(named))
    }

    /// Returns the digest of a copy to one asset. It includes the id of the source, not its present adjustments.
    static func of(_ copy: CopyEdits, _ asset: ObjectID) -> String {
        var named = copy
        named.to = [asset]
        named.fetch = nil
        named.priority = .normal
        named.isNetworkAccessAllowed = false
        named.client = ""
        named.transaction = nil
        return digest(CopyEdits.method, CopyEdits.table.encode(named))
    }

    static func of(_ revert: RevertEdit) -> String {
        var named = revert
        named.client = ""
        named.transaction = nil
        return digest(RevertEdit.method, RevertEdit.table.encode(named))
    }

    static func of(_ undo: UndoEdits) -> String {
        var named = undo
        named.isNetworkAccessAllowed = false
        named.client = ""
        named.transaction = nil
        return digest(UndoEdits.method, UndoEdits.table.encode(named))
    }

    /// Returns the digest of a published edit: of its parameters as received, in canonical form, so that publishers can
    /// compute it too.
    static func of(published params: JSON) -> String { ResourceDigest(of: params.canonical.bytes).text }

    /// Returns a digest as 64 hexadecimal digits.
    private static func digest(_ method: String, _ params: JSONObject) -> String {
        let asked: JSON = ["method": .string(method), "params": .object(params)]
        return ResourceDigest(of: asked.bytes).text
    }
}

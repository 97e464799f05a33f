import Contracts
import JSONValue
import PhotoModel
import Storage

/// The digest of what a client asked for, without the names under which it asked.
///
/// The editor's own transactions differ from one attempt to the next: each is conditional on the revision that it was
/// rendered from. So the catalog compares this digest where a transaction id comes again (DESIGN 3.2).
enum EditDigest {
    static func of(_ edit: ApplyEdit) -> String {
        var named = edit
        named.client = ""
        named.transaction = nil
        return digest(ApplyEdit.method, ApplyEdit.table.encode(named))
    }

    /// Of a copy to one of its assets: what is copied counts by its name, not by the list that it has at the moment.
    static func of(_ copy: CopyEdits, _ asset: ObjectID) -> String {
        var named = copy
        named.to = [asset]
        named.fetch = nil
        named.priority = .normal
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
        named.client = ""
        named.transaction = nil
        return digest(UndoEdits.method, UndoEdits.table.encode(named))
    }

    /// Of a published edit: of its parameters as they came, in canonical form, so that its publisher can make it too.
    static func of(published params: JSON) -> String { ResourceDigest(of: params.canonical.bytes).text }

    /// 64 hexadecimal digits.
    private static func digest(_ method: String, _ params: JSONObject) -> String {
        let asked: JSON = ["method": .string(method), "params": .object(params)]
        return ResourceDigest(of: asked.bytes).text
    }
}

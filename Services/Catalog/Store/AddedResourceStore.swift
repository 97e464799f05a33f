import Basics
import PhotoModel

/// A client that may add to the library and read nothing of it.
struct AddOnlyClient: Sendable, Hashable {
    let identity: String
    /// The identity's public key, empty without one. Assets that another key of the same name has added do not count.
    let key: String

    init(identity: String, key: String?) {
        self.identity = identity
        self.key = key ?? ""
    }
}

/// Reads and writes which resources an add-only client has added, within one transaction.
///
/// The history contains this too, but only as long as records are kept, and there an existing asset takes longer to
/// look up than an unknown one. Here both take the same time for an asset that the client has not added.
struct AddedResourceStore {
    let database: SQLConnection

    static let schema = """
        CREATE TABLE added_resource (
            identity TEXT NOT NULL,
            public_key TEXT NOT NULL,
            asset TEXT NOT NULL,
            digest BLOB NOT NULL CHECK (length(digest) = 32),
            PRIMARY KEY (identity, public_key, asset, digest)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX added_resource_asset ON added_resource (asset);
        CREATE TRIGGER added_resource_deleted AFTER DELETE ON asset BEGIN
            DELETE FROM added_resource WHERE asset = OLD.id;
        END;
        """

    /// Records that a client has added an asset with its current resources.
    func add(_ asset: Asset, by client: AddOnlyClient) throws {
        for resource in asset.resources {
            guard let digest = [UInt8](hexadecimal: resource.digest) else { continue }
            try database.run(
                "INSERT OR IGNORE INTO added_resource VALUES (?, ?, ?, ?)",
                client.identity,
                client.key,
                asset.id.text,
                digest
            )
        }
    }

    /// Returns the digests of the resources with which a client has added an asset; empty if it has not, or if the
    /// asset was deleted.
    func digests(of asset: ObjectID, addedBy client: AddOnlyClient) throws -> Set<String> {
        let found = try database.all(
            "SELECT digest FROM added_resource WHERE identity = ? AND public_key = ? AND asset = ?",
            client.identity,
            client.key,
            asset.text
        ) { $0.bytes(0) }
        return Set(found.map(\.hexadecimal))
    }
}

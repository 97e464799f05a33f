import Glibc
import JSONValue
import PhotoModel
import Storage

/// A read of one snapshot of the database.
struct LibraryReader {
    /// The connection; only the types in Store and their tests use it.
    let database: SQLConnection
    /// The records that this read has decoded.
    let records: DecodedRecords

    init(database: SQLConnection) {
        self.database = database
        records = DecodedRecords(HistoryStore(database: database))
    }

    /// Called by long work between its statements; each statement calls it itself.
    ///
    /// - Throws: `CancellationError` if nobody waits for the read any more
    func checkCancellation() throws { try database.checkCancellation() }

    var fetches: FetchStore { FetchStore(database: database) }
    var collectionFetches: CollectionFetchStore { CollectionFetchStore(database: database) }
    var fetchKeys: FetchKeyStore { FetchKeyStore(database: database) }
    var history: HistoryStore { HistoryStore(database: database) }
    var assets: AssetStore { AssetStore(database: database) }
    /// Returns the reader of many assets.
    ///
    /// - Parameter projection: the members that are wanted
    func assetReader(_ projection: AssetProjection) -> AssetReader {
        AssetReader(database: database, projection: projection)
    }

    var imageDigests: ImageDigestStore { ImageDigestStore(database: database) }
    var metadata: MetadataStore { MetadataStore(database: database) }
    var collections: CollectionStore { CollectionStore(database: database) }
    var grants: GrantStore { GrantStore(database: database) }
    var edits: EditStore { EditStore(database: database) }
    var quarantine: QuarantineStore { QuarantineStore(database: database) }
    var remoteObjects: RemoteObjectStore { RemoteObjectStore(database: database) }
    var addedResources: AddedResourceStore { AddedResourceStore(database: database) }
    var uploadJobs: UploadJobStore { UploadJobStore(database: database) }
    var references: ReferencedDigestStore { ReferencedDigestStore(database: database) }

    func head() throws -> LibraryHead {
        guard let head = try history.head() else { throw DamagedRow("the database has no library row") }
        return head
    }

    func counter(_ name: String) throws -> Int { try CounterChanges.value(of: name, database) }

    /// Returns the usual counts of the library.
    func metrics() throws -> JSONObject {
        let head = try head()
        var counts = JSONObject()
        for name in ["assets", "visible", "visible.image", "visible.video", "visible.favorite", "hidden"] {
            counts[name] = JSON(try counter(name))
        }
        counts["library"] = .string(head.library)
        counts["oldest"] = .int(head.oldest)
        counts["historyBytes"] = JSON(try history.bytes())
        counts["editsAccepted"] = JSON(try edits.pending())
        counts["editsFinished"] = JSON(try edits.finished())
        return counts
    }
}

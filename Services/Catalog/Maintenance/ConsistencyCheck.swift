import JSONValue
import Metadata
import PhotoModel
import Storage

/// A comparison of a library's database with its stored files. It changes nothing and can run beside the catalog.
struct ConsistencyCheck {
    let folder: String
    /// The address of the database on PostgreSQL; nil for the file in the folder.
    let server: String?
    /// True if every file is read and verified against its digest.
    let isDeep: Bool
    /// Microseconds since 1970.
    let now: Int64

    /// The results of the comparison; of each kind of problem the count and the first few names.
    struct Findings {
        /// The number of resources that the database names.
        var resources = 0
        var bytes: Int64 = 0
        /// The number of files that are only in remote storage.
        var remote = 0
        var missing = Sample()
        /// Referenced files that are missing or changed, by their paths.
        var references = Sample()
        var wrongSize = Sample()
        var damaged = Sample()
        /// Stored files that the database does not name.
        var orphans = Sample()
        var orphanBytes: Int64 = 0
    }

    /// The count of a problem, and the first few digests or paths that have it.
    struct Sample {
        private(set) var count = 0
        private(set) var first: [String] = []

        mutating func add(_ digest: ResourceDigest) { add(digest.text) }

        mutating func add(_ name: String) {
            count += 1
            if first.count < 5 { first.append(name) }
        }

        var json: JSON { ["count": JSON(count), "first": JSON(first)] }
    }

    /// The age in microseconds below which a file without an asset is ignored: its transaction may be in progress.
    static let minimumAge: Int64 = 3_600_000_000

    /// - Parameter progress: called after each file
    func run(progress: (_ done: Int, _ total: Int) -> Void) throws -> JSON {
        let store = try ConsistencyCheckStore(folder: folder, server: server)
        let resources = try ResourceStore(root: "\(folder)/resources", isReadOnly: true)
        let problems = try store.problems(isDeep: isDeep)
        var findings = Findings()
        if problems.isEmpty { try examine(store, resources, &findings, progress) }
        let newest = try store.newest()
        var json: JSONObject = [
            "store": .object(try store.engine()), "exiv2": .string(MetadataReader.libraryVersion),
            "problems": JSON(problems), "sequence": .int(newest.sequence),
            "quarantined": JSON(try store.quarantinedCount(atLeast: Quarantine.failures)),
            "resources": JSON(findings.resources), "remote": JSON(findings.remote), "bytes": .int(findings.bytes),
            "isDeep": .bool(isDeep),
            "missing": findings.missing.json, "references": findings.references.json,
            "wrongSize": findings.wrongSize.json,
            "damaged": findings.damaged.json, "orphans": findings.orphans.json,
            "orphanBytes": .int(findings.orphanBytes),
        ]
        if let date = newest.date { json["newestRecord"] = .int(date) }
        return .object(json)
    }

    private func examine(
        _ store: ConsistencyCheckStore,
        _ resources: ResourceStore,
        _ findings: inout Findings,
        _ progress: (_ done: Int, _ total: Int) -> Void
    ) throws {
        let total = try store.resourceCount()
        var found = findings
        try store.forEachResource { digest, size, isRemote in
            found.resources += 1
            found.bytes += size
            check(digest, size, isRemote, resources, &found)
            progress(found.resources, total)
        }
        var stored: [(digest: ResourceDigest, size: Int64)] = []
        func addOrphans() throws {
            for (digest, size) in stored where try !store.isReferenced(digest) {
                found.orphans.add(digest)
                found.orphanBytes += size
            }
            stored = []
        }
        var failure: (any Error)?
        try resources.forEach { digest, size, storedAt in
            guard storedAt < now - Self.minimumAge else { return true }
            stored.append((digest, size))
            guard stored.count >= 1000 else { return true }
            do { try addOrphans() } catch { failure = error }
            return failure == nil
        }
        if let failure { throw failure }
        try addOrphans()
        findings = found
    }

    private func check(
        _ digest: ResourceDigest,
        _ size: Int64,
        _ isRemote: Bool,
        _ resources: ResourceStore,
        _ found: inout Findings
    ) {
        let file: ResourceFile
        do throws(StorageError) {
            file = try resources.open(digest)
        } catch {
            if case .notFound = error, isRemote {
                found.remote += 1
                return
            }
            if let path = referencedPath(of: digest, resources) {
                found.references.add(path)
            } else {
                found.missing.add(digest)
            }
            return
        }
        guard file.size == size else {
            found.wrongSize.add(digest)
            return
        }
        guard isDeep else { return }
        do throws(StorageError) {
            try file.verify()
        } catch {
            if let path = referencedPath(of: digest, resources) {
                found.references.add(path)
            } else {
                found.damaged.add(digest)
            }
        }
    }

    /// Returns the path of a referenced file; nil if the bytes are in the store or unknown.
    private func referencedPath(of digest: ResourceDigest, _ resources: ResourceStore) -> String? {
        guard !resources.contains(digest) else { return nil }
        return (try? resources.reference(of: digest))?.path
    }
}

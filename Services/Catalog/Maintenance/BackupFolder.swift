import Glibc
import Hosting
import JSONValue
import PhotoModel
import Storage

/// The folder of a backup.
///
/// `manifest.json` names the database file of the backup and is replaced last: if a backup is interrupted, the previous
/// one stays complete. `resources/` has the layout of a library.
struct BackupFolder: Sendable {
    /// The content of `manifest.json`.
    struct Manifest: Sendable, Equatable {
        static let format = 1
        var format = Self.format
        var version = ServiceVersion.current
        var token: ChangeToken
        /// Microseconds since 1970.
        var date: Int64
        /// The name of the database file in the folder.
        var database: String
        /// The SHA-256 of its bytes.
        var databaseDigest: String
        var resources: Int
        var bytes: Int64
        /// The number of resources whose bytes are in files elsewhere.
        var referenced: Int

        var json: JSON {
            [
                "format": JSON(format), "version": .string(version), "token": .string(token.description),
                "date": .int(date), "database": .string(database), "databaseDigest": .string(databaseDigest),
                "resources": JSON(resources), "bytes": .int(bytes), "referenced": JSON(referenced),
            ]
        }
    }

    /// The name of the file that marks the folder of a backup and is locked while a backup is made.
    static let marker = "backup.lock"
    /// The name of the database file of a backup that is not complete.
    static let partialDatabase = "library-new.sqlite"
    let path: String

    var manifestPath: String { path + "/manifest.json" }
    var resourcesPath: String { path + "/resources" }
    func databasePath(_ name: String) -> String { "\(path)/\(name)" }

    /// Returns the name of the database file of a new backup. It contains the date, because a backup of an unchanged
    /// library has the sequence of the previous backup, whose file stays until the manifest is replaced.
    static func databaseName(_ sequence: Int64, date: Int64) -> String { "library-\(sequence)-\(date).sqlite" }

    /// Returns true if the folder is empty or has a backup, complete or not.
    func isUsable() -> Bool {
        guard let names = try? Self.names(path) else { return false }
        return names.isEmpty || names.contains(Self.marker)
    }

    /// Reads the manifest of a complete backup.
    ///
    /// - Throws: ``StorageError/notFound(_:)``, ``StorageError/newerVersion(_:)``, ``StorageError/corrupt(_:)``
    func manifest() throws -> Manifest {
        let bytes: [UInt8]
        do throws(StorageError) {
            bytes = try DurableFile.open(manifestPath).readAll(limit: 1 << 20)
        } catch {
            throw StorageError.notFound("\(path) holds no complete backup: \(error.message)")
        }
        guard let json = try? JSON(parsing: bytes), let format = json["format"]?.intValue else {
            throw StorageError.corrupt("\(manifestPath) cannot be read")
        }
        guard format <= Manifest.format else {
            throw StorageError.newerVersion("\(path) was written by a newer version of Safelight; use that version")
        }
        guard let token = json["token"]?.stringValue.flatMap({ ChangeToken($0) }),
            let date = json["date"]?.intValue, let database = json["database"]?.stringValue,
            !database.contains("/"), let digest = json["databaseDigest"]?.stringValue,
            let resources = json["resources"]?.intValue, let size = json["bytes"]?.intValue
        else { throw StorageError.corrupt("\(manifestPath) is not a complete manifest") }
        return Manifest(
            version: json["version"]?.stringValue ?? "",
            token: token,
            date: date,
            database: database,
            databaseDigest: digest,
            resources: Int(resources),
            bytes: size,
            referenced: Int(json["referenced"]?.intValue ?? 0)
        )
    }

    /// Reads the manifest of the existing backup; nil if there is none yet.
    ///
    /// - Throws: as ``manifest()``, if there is one that cannot be read
    private func earlierManifest() throws -> Manifest? {
        if access(manifestPath, F_OK) != 0, errno == ENOENT { return nil }
        return try manifest()
    }

    /// Checks that an existing backup is of an earlier state of the library. Otherwise the library may have lost the
    /// content of the backup, because it was created again or an older copy of it was restored.
    ///
    /// - Throws: ``StorageError/invalid(_:)``, also for a manifest that cannot be read
    func requireEarlierBackup(of head: LibraryHead) throws {
        let advice = "Nothing was changed. Name a new folder, or move this one away"
        let found: Manifest?
        do {
            found = try earlierManifest()
        } catch StorageError.corrupt(let message), StorageError.newerVersion(let message) {
            throw StorageError.invalid("\(message). \(advice)")
        }
        guard let manifest = found else { return }
        guard manifest.token.library == head.library, manifest.token.sequence <= head.sequence else {
            throw StorageError.invalid(
                "\(path) has a backup (\(manifest.token)) of another history than the library (\(head.token)), "
                    + "or a newer one: it may be the only copy of what the library has lost. \(advice)"
            )
        }
    }

    func write(_ manifest: Manifest) throws {
        try DurableFile.replace(manifestPath, with: Array(manifest.json.prettyText.utf8))
    }

    /// Removes the database files that the manifest does not name: those of earlier backups, and that of an unfinished
    /// one, which may have filled the disk.
    func removeOtherDatabases() throws {
        let current = try earlierManifest()?.database
        for name in try Self.names(path) where name.hasPrefix("library-") && name != current {
            unlink("\(path)/\(name)")
        }
    }

    /// Returns the names in a folder, without `lost+found`, which the root of every ext4 filesystem has.
    static func names(_ path: String) throws -> [String] {
        guard let folder = opendir(path) else {
            throw StorageError.io("\(path) cannot be listed: \(String(cString: strerror(errno)))")
        }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != "..", name != "lost+found" { names.append(name) }
        }
        return names
    }
}

import Storage

/// The reason why maintenance of the library is refused or fails.
enum MaintenanceError: RefusedRequest, Equatable {
    // MARK: Backup

    /// Another backup is running.
    case backupRunning
    /// The target of a backup is not an absolute path.
    case targetNotAbsolute
    /// The target of a backup is in the library's own folder.
    case targetInLibrary
    /// The target of a backup cannot be created.
    case targetNotCreated(String, reason: String)
    /// The target of a backup has other content.
    case targetNotEmpty(String)
    /// The backup failed.
    case backupFailed(StorageError, target: String)

    // MARK: Rescan and collection

    /// A client that is not connected over ipc requested a rescan.
    case rescanOverNetwork
    /// Another rescan is running.
    case rescanRunning
    /// The folder is not below a configured import folder.
    case notBelowImportFolder(String, allowed: [String])
    /// No import folder is configured.
    case noImportFolder
    /// A collection was requested while a backup is running; no bytes are removed then.
    case collectionDuringBackup
}

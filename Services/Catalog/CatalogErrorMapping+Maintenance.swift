import Contracts
import JSONValue
import Storage

extension CatalogErrorMapping {
    /// Returns the error on the wire for maintenance that was refused or failed.
    static func rpcError(_ error: MaintenanceError) -> RPCError {
        switch error {
        case .backupRunning: ErrorCode.busy.error("another backup is running; try again when it is done")
        case .targetNotAbsolute:
            ErrorCode.invalidParams.error(
                "the target must be an absolute path without ..",
                ["parameter": "target"]
            )
        case .targetInLibrary:
            ErrorCode.invalidOptions.error("the target is inside the library's own folder; choose another")
        case .targetNotCreated(let path, let reason):
            ErrorCode.invalidOptions.error("\(path) cannot be created: \(reason); create its parent folder first")
        case .targetNotEmpty(let path):
            ErrorCode.invalidOptions.error("\(path) is neither empty nor an earlier backup; choose another folder")
        case .backupFailed(let error, let target): backupError(error, target)
        case .rescanOverNetwork: ErrorCode.accessDenied.error("paths are accepted over ipc only")
        case .rescanRunning: ErrorCode.busy.error("another rescan is running; try again when it is done")
        case .notBelowImportFolder(let folder, let allowed):
            ErrorCode.accessDenied.error(
                "\(folder) is not below a configured import folder",
                ["path": .string(folder), "allowed": JSON(allowed)]
            )
        case .noImportFolder:
            ErrorCode.accessDenied.error(
                "no import folder is configured; start the catalog with --import-root FOLDER, or set "
                    + "SAFELIGHT_IMPORT_ROOTS for all services"
            )
        case .collectionDuringBackup:
            ErrorCode.busy.error("nothing is removed while a backup is running; try again when it is done")
        }
    }

    private static func backupError(_ error: StorageError, _ target: String) -> RPCError {
        switch error {
        case .notEnoughSpace:
            ErrorCode.notEnoughSpace.error("the disk of \(target) is full; free some space and start the backup again")
        case .inUse(let message): ErrorCode.busy.error(message)
        case .resourceChanged, .notFound:
            ErrorCode.resourceChanged.error("a resource of the library is damaged: \(error.message)")
        case .invalid(let message): ErrorCode.invalidOptions.error(message)
        case .offline, .serverOffline, .relinquished: error.rpcError
        default: ErrorCode.internalError.error("the backup failed: \(error.message)")
        }
    }
}

import Messaging
import Basics
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization
import SystemPackage

/// The outcome of the import of one file.
enum ImportFileOutcome: Sendable {
    /// - Parameter same: an asset with the same image, in a file with other metadata
    case imported(ObjectID, sequence: Int64, same: ObjectID?)
    /// The library already contained these bytes; `isHealed` if they replaced a damaged file, `isRestored` if their
    /// asset was in the trash and was restored.
    case duplicate(ObjectID, isHealed: Bool, isRestored: Bool)
    /// The sidecar was not applied, because its photo was in the library already.
    case notApplied(ObjectID)
    /// The file cannot be imported; the import continues with the others.
    case broken(RPCError)
}

/// A file and its outcome.
struct FileOutcome: Sendable {
    let path: FilePath
    let outcome: ImportFileOutcome

    init(_ path: FilePath, _ outcome: ImportFileOutcome) {
        self.path = path
        self.outcome = outcome
    }
}

/// Imports items concurrently: small files in groups with one transaction each, other items in transactions of their
/// own.
///
/// There is no state between runs: the catalog recognizes bytes that the library already has.
struct ImportRun: Sendable {
    let library: PhotoLibrary
    /// The number of files that are imported at the same time; small ones count for less.
    let maxConcurrentFiles: Int
    /// True if files are referenced where they are instead of being copied.
    let isReferenced: Bool
    /// True if the stored files of bytes that the library already has are read and compared.
    let verifies: Bool
    /// The prefix of the transaction ids of this run, so that a repeated request is not performed twice.
    private let name = "import-" + PhotoLibrary.uniqueTransaction()
    private let access: Access

    /// The way in which the catalog gets the bytes: by path until it refuses paths, then as attachments and uploads.
    private final class Access: Sendable {
        /// Limits the items with uploads. An item has up to three uploads, and an identity may have 64 open at a time,
        /// so an item with a permit never waits for the uploads of another one. Over a slow network, fewer items at a
        /// time are also complete sooner.
        let uploading = FairSemaphore<Int>(permits: 16)
        private let mayNamePaths: Mutex<Bool>
        init(mayNamePaths: Bool) { self.mayNamePaths = Mutex(mayNamePaths) }
        var usesPaths: Bool { mayNamePaths.withLock { $0 } }
        func disallowPaths() { mayNamePaths.withLock { $0 = false } }
    }

    /// The time limit of each request, including restarts of services.
    static let deadline = Duration.seconds(300)
    /// One byte more than the catalog accepts, so that it refuses a longer sidecar: a truncated one would be accepted.
    private static let maxSidecarBytes = (4 << 20) + 1

    init(library: PhotoLibrary, maxConcurrentFiles: Int, isReferenced: Bool = false, verifies: Bool = false) {
        self.library = library
        self.verifies = verifies
        self.isReferenced = isReferenced
        self.maxConcurrentFiles = max(1, maxConcurrentFiles)
        // Only a catalog on this machine can open the paths.
        self.access = Access(mayNamePaths: library.endpoints.catalogs.allSatisfy { $0.transport == .ipc })
    }

    /// Imports items until there are none. If a stop is requested, finishes the items in progress and returns.
    ///
    /// - Parameters:
    ///   - next: returns the next item; called when an item can be started, so that items are not queued
    ///   - report: called for each finished file, one at a time
    /// - Throws: errors that would affect all other files too, for example an unreachable service or a full disk
    func run(
        _ next: () -> ImportItem?,
        stop: StopRequest,
        report: (_ index: Int, _ outcome: FileOutcome) throws -> Void
    ) async throws {
        var groups = ImportGroups(maxFiles: isReferenced ? 1 : maxConcurrentFiles / Self.smallFilesPerFile)
        try await withThrowingTaskGroup(of: (first: Int, outcomes: [[FileOutcome]]).self) { group in
            var number = 0
            var running = 0
            func start() {
                while running < maxConcurrentFiles, !stop.isRequested {
                    let items = groups.next(next)
                    guard !items.isEmpty else { return }
                    let first = number
                    number += items.count
                    running += Self.weight(items.count)
                    group.addTask { (first, try await self.importGroup(items, first: first)) }
                }
            }
            start()
            while let (first, outcomes) = try await group.next() {
                running -= Self.weight(outcomes.count)
                for (index, files) in outcomes.enumerated() {
                    for outcome in files { try report(first + index, outcome) }
                }
                start()
            }
        }
    }

    /// The number of small files that count as one of the files in progress. Those in progress are synced together, so
    /// with more of them the catalog waits for the disk less often.
    private static let smallFilesPerFile = 4

    /// Returns the weight of a group among the files in progress.
    private static func weight(_ files: Int) -> Int { max(1, files / smallFilesPerFile) }

    /// Imports items and returns the outcomes of each. Those of several items are imported in one transaction; if it is
    /// refused because of a file, each is imported alone.
    private func importGroup(_ items: [ImportItem], first: Int) async throws -> [[FileOutcome]] {
        if items.count > 1, let outcomes = try await importTogether(items, "\(name)-\(first)-\(items.count)") {
            return outcomes.map { [$0] }
        }
        var outcomes: [[FileOutcome]] = []
        for (index, item) in items.enumerated() {
            outcomes.append(try await importItem(item, name: "\(first + index)"))
        }
        return outcomes
    }

    /// Imports single files in one transaction; returns nil if they have to be imported one by one.
    private func importTogether(_ items: [ImportItem], _ transaction: String) async throws -> [FileOutcome]? {
        guard access.usesPaths else { return nil }
        var requests: [ChangeRequest] = []
        for (index, item) in items.enumerated() {
            guard let resources = resourcesByPath(item) else { return nil }
            requests.append(.createAsset(.init(ref: "\(index)", resources: resources)))
        }
        let result: PerformChanges.Result
        do throws(RPCError) {
            result = try await library.perform(requests, transaction: transaction, deadline: Self.deadline)
        } catch {
            let refusesPaths = error.errorCode == .accessDenied || error.errorCode == .accessRestricted
            guard error.concernsFile || refusesPaths else { throw error }
            return nil
        }
        return try items.enumerated().map { index, item in
            let ref = "\(index)"
            guard let id = result.id(ref) else { throw Self.noIdentifier }
            guard result.duplicates.contains(ref) else {
                let same = result.sameImage.first { $0.ref == ref }
                return FileOutcome(
                    item.main,
                    .imported(id, sequence: result.sequence, same: same?.assets.first)
                )
            }
            return FileOutcome(
                item.main,
                .duplicate(
                    id,
                    // The file may have been removed meanwhile, or only the catalog can read it.
                    isHealed: (try? Self.isHealed(item.main, result)) ?? false,
                    isRestored: result.restored.contains(id)
                )
            )
        }
    }

    private static let noIdentifier = ErrorCode.internalError.error(
        "the catalog returned no identifier for the new asset"
    )

    /// Returns true if a file is one of those that replaced damaged ones, whose digests the result has.
    private static func isHealed(_ path: FilePath, _ result: PerformChanges.Result) throws(RPCError) -> Bool {
        guard !result.healed.isEmpty else { return false }
        let bytes = try InputBytes(path).read(limit: Int(ImportGroups.maxFileBytes))
        return result.healed.contains(SHA256.hash(data: bytes).hexadecimal)
    }

    /// Imports an item. If its sidecar cannot be read, reports it and imports the files without it. If the files do
    /// not belong together according to the catalog, imports each as an asset of its own.
    private func importItem(_ item: ImportItem, name: String) async throws -> [FileOutcome] {
        let result: PerformChanges.Result
        do throws(RPCError) {
            result = try await create(item, "\(self.name)-\(name)")
            guard result.id("file") != nil else { throw Self.noIdentifier }
        } catch {
            return try await importParts(of: item, name: name, refused: error)
        }
        guard let id = result.id("file") else { return [] }
        let outcome: ImportFileOutcome =
            result.duplicates.contains("file")
            ? .duplicate(id, isHealed: !result.healed.isEmpty, isRestored: result.restored.contains(id))
            : .imported(id, sequence: result.sequence, same: result.sameImage.first?.assets.first)
        var outcomes = [FileOutcome(item.main, outcome)]
        let ignored = Set(result.ignored.flatMap(\.members))
        if ignored.contains("sidecar"), let sidecar = item.sidecar {
            outcomes.append(FileOutcome(sidecar, .notApplied(id)))
        }
        if ignored.contains("resources") { outcomes += try await importRest(of: item, knownAs: id, name: name) }
        return outcomes
    }

    /// Imports the parts of a refused item that can be imported without the others.
    ///
    /// - Throws: an error that concerns other files too
    private func importParts(
        of item: ImportItem,
        name: String,
        refused error: RPCError
    ) async throws -> [FileOutcome] {
        if let sidecar = item.sidecar, error.data["sidecar"] == true, error.concernsFile {
            return try await importItem(item.withoutSidecar, name: name + ".alone")
                + [FileOutcome(sidecar, .broken(error))]
        }
        if error.errorCode == .resourcesDisagree || item.files.count > 1 && error.concernsFile {
            var outcomes: [FileOutcome] = []
            for (number, part) in item.separateItems.enumerated() {
                outcomes += try await importItem(part, name: "\(name).\(number)")
            }
            return outcomes
        }
        guard error.concernsFile else { throw error }
        return [FileOutcome(item.main, .broken(error))]
    }

    /// Imports the raw file or the video of a known photo as an asset of its own, if the photo has another one.
    private func importRest(
        of item: ImportItem,
        knownAs id: ObjectID,
        name: String
    ) async throws -> [FileOutcome] {
        let asset: Asset
        do throws(RPCError) {
            asset = try await library.namedAsset(id, members: ["id", "resources"])
        } catch {
            // The asset may have been deleted meanwhile.
            guard error.concernsFile else { throw error }
            return item.files.dropFirst().map { FileOutcome($0.path, .broken(error)) }
        }
        let digests = Set(asset.resources.map(\.digest))
        var outcomes: [FileOutcome] = []
        for (number, part) in item.separateItems.enumerated() where part.main != item.main {
            do throws(RPCError) {
                guard !digests.contains(try InputBytes(part.main).digest()) else { continue }
            } catch {
                outcomes.append(FileOutcome(part.main, .broken(error)))
                continue
            }
            outcomes += try await importItem(part, name: "\(name).rest\(number)")
        }
        return outcomes
    }

    private func create(_ item: ImportItem, _ transaction: String) async throws(RPCError) -> PerformChanges.Result {
        // A path that is not UTF-8 cannot be sent as JSON; the bytes are sent instead.
        if access.usesPaths || isReferenced, let resources = resourcesByPath(item) {
            let sidecar = item.sidecar?.exactText.map { NewResource(source: .path($0)) }
            do throws(RPCError) {
                return try await perform(resources, sidecar, [], transaction)
            } catch  where !isReferenced && (error.errorCode == .accessDenied || error.errorCode == .accessRestricted) {
                access.disallowPaths()
            }
        }
        guard !isReferenced else {
            throw ErrorCode.invalidResource.error("the file name is not UTF-8; such a file cannot be referenced")
        }
        // Counts from the first refusal, because the uploads before it may take long.
        var end: ContinuousClock.Instant?
        var losses = 0
        while true {
            do throws(RPCError) {
                return try await createFromBytes(item, transaction + "-bytes")
            } catch  where error.isUploadLimit && end.map({ ContinuousClock.now < $0 }) != false {
                // Another import with this identity has the uploads open. Each of them ends with its item.
                end = end ?? (ContinuousClock.now + Self.deadline)
                await TaskDelay.retryDelay(.milliseconds(Int.random(in: 500...1500)))
            } catch  where error.errorCode == .handleExpired && losses + 1 < PhotoLibrary.uploadAttempts {
                // The catalog was restarted after the upload of a file: nothing was committed.
                losses += 1
            }
        }
    }

    /// The bytes of one item.
    private struct ItemBytes {
        var attachments: [Bytes] = []
        /// The number of bytes that can still be attached.
        var remaining = Int64(BeginUpload.chunkBytes)
        var uploads: [String] = []
    }

    /// Sends the bytes of an item and creates its asset, with a permit if not all of them fit into the request.
    private func createFromBytes(
        _ item: ImportItem,
        _ transaction: String
    ) async throws(RPCError) -> PerformChanges.Result {
        var size: Int64 = 0
        for (_, path) in item.files { size += try InputBytes(path).size }
        guard size > Int64(BeginUpload.chunkBytes) else { return try await sendBytes(item, transaction) }
        let result = try await access.uploading.withPermit(for: 0) { () async throws(RPCError) in
            try await sendBytes(item, transaction)
        }
        guard let result else { throw ErrorCode.userCancelled.error("the import was cancelled") }
        return result
    }

    /// Sends the bytes of an item and creates its asset. If that fails, cancels its uploads.
    private func sendBytes(_ item: ImportItem, _ transaction: String) async throws(RPCError) -> PerformChanges.Result {
        var bytes = ItemBytes()
        do throws(RPCError) {
            return try await sendBytes(item, transaction, &bytes)
        } catch {
            await library.cancelUploads(bytes.uploads)
            throw error
        }
    }

    private func sendBytes(
        _ item: ImportItem,
        _ transaction: String,
        _ bytes: inout ItemBytes
    ) async throws(RPCError) -> PerformChanges.Result {
        var resources: [NewResource] = []
        for (type, path) in item.files {
            let source = try await source(path, &bytes)
            resources.append(
                NewResource(
                    type: type,
                    source: source,
                    originalFilename: path.lastComponent?.string,
                    verifies: verifies
                )
            )
        }
        var sidecar: NewResource?
        if let path = item.sidecar {
            sidecar = NewResource(
                source: .attachment(bytes.attachments.count),
                originalFilename: path.lastComponent?.string
            )
            do throws(RPCError) {
                bytes.attachments.append(try InputBytes(path).read(limit: Self.maxSidecarBytes))
            } catch {
                var error = error
                error.data["sidecar"] = true
                throw error
            }
        }
        return try await perform(resources, sidecar, bytes.attachments, transaction)
    }

    private func resourcesByPath(_ item: ImportItem) -> [NewResource]? {
        let files = item.files
        let resources = files.compactMap { type, path in
            path.exactText.map {
                NewResource(
                    type: type,
                    source: .path($0),
                    originalFilename: path.lastComponent?.string,
                    isReferenced: isReferenced,
                    verifies: verifies
                )
            }
        }
        return resources.count == files.count ? resources : nil
    }

    /// Returns the source of a file: an attachment if the file still fits into the request, an upload otherwise.
    private func source(_ path: FilePath, _ bytes: inout ItemBytes) async throws(RPCError) -> ResourceSource {
        let file = try InputBytes(path)
        if file.size <= bytes.remaining {
            bytes.remaining -= file.size
            bytes.attachments.append(try file.read(limit: Int(file.size)))
            return .attachment(bytes.attachments.count - 1)
        }
        let upload = try await library.upload(file: file.path, deadline: Self.deadline, verifies: verifies)
        bytes.uploads.append(upload)
        return .upload(upload)
    }

    private func perform(
        _ resources: [NewResource],
        _ sidecar: NewResource?,
        _ attachments: [Bytes],
        _ transaction: String
    ) async throws(RPCError) -> PerformChanges.Result {
        try await library.perform(
            [.createAsset(.init(ref: "file", resources: resources, sidecar: sidecar))],
            attachments: attachments,
            transaction: transaction,
            deadline: Self.deadline
        )
    }
}

extension RPCError {
    /// True if the error concerns this file only, so that other files can still be imported.
    var concernsFile: Bool {
        switch errorCode {
        case .notEnoughSpace, .accessDenied, .accessRestricted, .libraryOffline, .libraryRelinquished,
            .librarySwitching, .libraryReadOnly, .userCancelled, .interrupted, .busy, .deadlineExceeded,
            .connectionLost, .behind, .unavailable, .idReused, .methodNotFound, .invalidParams, .handleExpired:
            false
        case .limitExceeded: !isUploadLimit
        default: true
        }
    }

    /// True if the error is the limit of open uploads at the catalog, of this identity or of all together.
    var isUploadLimit: Bool {
        (errorCode == .limitExceeded || errorCode == .busy) && data["open"]?.intValue != nil
    }
}

extension FilePath {
    /// The path as text; nil if it is not UTF-8.
    var exactText: String? { withPlatformString { String(validatingCString: $0) } }
}

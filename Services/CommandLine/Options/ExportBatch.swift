import JSONValue
import SystemPackage

/// Exported files that are complete but not synced yet, under their temporary names.
///
/// A disk syncs hundreds of small files in about the time of one. The files of a second are therefore synced together,
/// with the whole filesystem; then they are renamed and reported. A file that took longer is synced at once.
struct ExportBatch {
    /// A file that was exported.
    struct File {
        /// The closed file; nil if it existed before.
        var writer: OutputFileWriter?
        /// The result that is printed; nil for a sidecar.
        var result: (json: JSON, line: String)?
    }

    /// The files of one asset.
    struct Item {
        var files: [File] = []
        /// False if a file of the asset could not be exported, which was reported.
        var isComplete = true
    }

    /// The time after which files are synced.
    static let interval = Duration.seconds(1)
    /// The maximum number of files that are synced together.
    static let limit = 1000

    private let folder: Folder
    private let sync: FileSync
    private let clock = ContinuousClock()
    private var lastSync: ContinuousClock.Instant
    private var items: [Item] = []
    private var count = 0

    /// - Parameter path: the folder of the files, which exists
    init(of path: String, sync: FileSync = .system) {
        folder = Folder(path)
        self.sync = sync
        lastSync = clock.now
    }

    /// True if each file has to be synced when it is closed, because the filesystem cannot be synced as a whole.
    var syncsEachFile: Bool { sync.filesystem == nil || folder.descriptor == nil }

    /// Adds the files of an asset. Flushes the batch if it is large enough or the interval is over.
    mutating func append(_ item: Item, _ progress: inout ProgressReporter) {
        items.append(item)
        count += item.files.count
        if count >= Self.limit || clock.now - lastSync >= Self.interval { flush(&progress) }
    }

    /// Syncs the files of the batch, renames them to their final names and reports them.
    mutating func flush(_ progress: inout ProgressReporter) {
        let isNew = items.contains { item in item.files.contains { $0.writer != nil } }
        let problem = isNew ? Self.problem { try syncContent() } : nil
        let published = items.map { publish($0, unless: problem, &progress) }
        let renameProblem = isNew && problem == nil ? Self.problem { try syncNames() } : nil
        if let renameProblem {
            progress.report(
                CommandFailure(message: "\(folder.path) cannot be written: \(renameProblem)", name: "not_written")
            )
        }
        for item in published {
            for case let result? in item.files.map(\.result) where renameProblem == nil {
                progress.write(result.json, result.line)
            }
            progress.step(isDone: item.isComplete && renameProblem == nil)
        }
        (items, count, lastSync) = ([], 0, clock.now)
    }

    private func syncContent() throws {
        guard let filesystem = sync.filesystem, let descriptor = folder.descriptor else { return }
        try filesystem(descriptor)
    }

    private func syncNames() throws {
        if let descriptor = folder.descriptor { try sync.names(descriptor) }
    }

    private static func problem(of work: () throws -> Void) -> (any Error)? {
        do {
            try work()
            return nil
        } catch {
            return error
        }
    }

    /// Renames the files of an asset to their final names, in their order until one of them fails.
    ///
    /// - Parameter problem: the error of syncing the files, after which they are deleted; nil if they are synced
    /// - Returns: the files that have their final names
    private func publish(_ item: Item, unless problem: (any Error)?, _ progress: inout ProgressReporter) -> Item {
        var published = Item(isComplete: item.isComplete)
        var failure: CommandFailure?
        for file in item.files {
            guard let writer = file.writer else {
                published.files.append(file)
                continue
            }
            if failure == nil, problem == nil {
                do {
                    try writer.publish()
                    published.files.append(file)
                } catch {
                    failure = CommandFailure(error)
                }
            } else {
                failure = failure ?? problem.map { writer.failure("\($0)") }
                writer.discard()
            }
        }
        if let failure {
            progress.report(failure)
            published.isComplete = false
        }
        return published
    }

    /// The folder, open as long as files are written: the system reports errors of earlier writes to its descriptor.
    private final class Folder {
        let path: String
        /// Nil if the folder may be written, but not read.
        let descriptor: FileDescriptor?

        init(_ path: String) {
            self.path = path
            descriptor = try? FileDescriptor.open(FilePath(path), .readOnly, options: .directory)
        }

        deinit { try? descriptor?.close() }
    }
}

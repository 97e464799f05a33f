import Contracts
import Glibc
import Messaging
import PhotoClient
import PhotoModel
import Synchronization
import SystemPackage

/// What became of one file.
enum ImportOutcome: Sendable {
    case imported(ObjectID, sequence: Int64)
    /// Its bytes were in the library already.
    case duplicate(ObjectID)
    /// The file cannot be taken in; the others can.
    case broken(RPCError)
}

/// Takes files into the library, several at a time, each in a transaction of its own.
///
/// Nothing has to be remembered between runs: bytes that the library has already are recognised by the catalog.
struct ImportRun: Sendable {
    let library: PhotoLibrary
    /// Files under way at once.
    let width: Int
    /// Names the transactions of this run, so that one that is sent again is not done twice.
    private let name = "import-" + PhotoLibrary.randomTransaction()
    private let access: Access

    /// How the catalog gets at the bytes.
    private final class Access: Sendable {
        private let mayNamePaths: Mutex<Bool>
        init(mayNamePaths: Bool) { self.mayNamePaths = Mutex(mayNamePaths) }
        var byPath: Bool { mayNamePaths.withLock { $0 } }
        func refusePaths() { mayNamePaths.withLock { $0 = false } }
    }

    /// The longest that one file may take, restarts of services included.
    static let deadline = Duration.seconds(300)

    init(library: PhotoLibrary, width: Int) {
        self.library = library
        self.width = max(1, width)
        // Paths mean something to a catalog on this machine alone.
        self.access = Access(mayNamePaths: library.endpoints.catalog.transport == .ipc)
    }

    /// Imports all files; stops early, finishing what is under way, when that is wished.
    ///
    /// - Parameter tell: called for each file that is done, one at a time
    /// - Throws: what makes going on pointless: nobody answers, the disk is full
    func run(
        _ files: [FilePath],
        stop: StopRequest,
        tell: (_ index: Int, _ outcome: ImportOutcome) throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: (Int, ImportOutcome).self) { group in
            var next = 0
            func start() {
                guard next < files.count, !stop.isRequested else { return }
                let index = next
                next += 1
                group.addTask { (index, try await self.take(files[index], index: index)) }
            }
            for _ in 0..<width { start() }
            while let (index, outcome) = try await group.next() {
                try tell(index, outcome)
                start()
            }
        }
    }

    private func take(_ path: FilePath, index: Int) async throws -> ImportOutcome {
        do throws(RPCError) {
            let result = try await create(path, index: index)
            guard let id = result.id("file") else {
                throw Refusal.internalError.error("the catalog did not name the new asset")
            }
            return result.duplicates.contains("file") ? .duplicate(id) : .imported(id, sequence: result.sequence)
        } catch {
            guard error.isOfTheFile else { throw error }
            return .broken(error)
        }
    }

    private func create(_ path: FilePath, index: Int) async throws(RPCError) -> PerformChanges.Result {
        // JSON is UTF-8; a name that is not goes by its bytes.
        if access.byPath, let text = path.exactText {
            do throws(RPCError) {
                return try await perform(.path(text), [], path, "\(name)-\(index)")
            } catch  where error.refusal == .accessDenied || error.refusal == .accessRestricted {
                access.refusePaths()
            }
        }
        let file: FileDescriptor
        let size: Int64
        do {
            file = try FileDescriptor.open(path, .readOnly)
            size = try file.seek(offset: 0, from: .end)
        } catch {
            throw Refusal.missingResource.error("it cannot be read: \(error)")
        }
        defer { try? file.close() }
        let transaction = "\(name)-\(index)-bytes"
        guard size > Int64(BeginUpload.chunkBytes) else {
            return try await perform(.attachment(0), [try Self.bytes(of: file, size: Int(size))], path, transaction)
        }
        let upload = try await library.upload(file: "/proc/self/fd/\(file.rawValue)", deadline: Self.deadline)
        return try await perform(.upload(upload), [], path, transaction)
    }

    private func perform(
        _ source: ResourceSource,
        _ attachments: [Bytes],
        _ path: FilePath,
        _ transaction: String
    ) async throws(RPCError) -> PerformChanges.Result {
        let resource = NewResource(source: source, originalFilename: path.lastComponent?.string)
        return try await library.perform(
            [.createAsset(.init(ref: "file", resources: [resource]))],
            attachments: attachments,
            transaction: transaction,
            deadline: Self.deadline
        )
    }

    private static func bytes(of file: FileDescriptor, size: Int) throws(RPCError) -> Bytes {
        var bytes = Bytes(repeating: 0, count: size)
        do {
            var filled = 0
            while filled < size {
                let count = try bytes.withUnsafeMutableBytes { buffer in
                    try file.read(fromAbsoluteOffset: Int64(filled), into: .init(rebasing: buffer[filled...]))
                }
                if count == 0 { break }
                filled += count
            }
            return Bytes(bytes.prefix(filled))
        } catch {
            throw Refusal.missingResource.error("it cannot be read: \(error)")
        }
    }
}

extension RPCError {
    /// The fault lies in this one file: others may well be taken in.
    var isOfTheFile: Bool {
        switch refusal {
        case .notEnoughSpace, .accessDenied, .accessRestricted, .libraryOffline, .userCancelled, .busy,
            .deadlineExceeded, .connectionLost, .behind, .unavailable, .idReused, .methodNotFound, .invalidParams:
            false
        default: true
        }
    }
}

extension FilePath {
    /// The path as text, where it is UTF-8.
    var exactText: String? { withPlatformString { String(validatingCString: $0) } }
}

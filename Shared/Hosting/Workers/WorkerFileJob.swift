import Basics
import Foundation
import Glibc
import JSONValue

/// Runs worker jobs whose result is a file that a worker sends through a pipe, as ``WorkerOutputRecord``.
///
/// The file has no name, so the system frees its space when its last descriptor is closed.
public struct WorkerFileJob: Sendable {
    public enum Failure: Error, Sendable {
        case worker(WorkerFailure)
        /// The file cannot be created or written.
        case notWritten(errno: Int32)
        /// The worker did not send a file.
        case malformed
    }

    private let runner: ResourceJobRunner
    private let folder: String
    private let maxBytes: Int64

    /// - Parameters:
    ///   - folder: the folder of the files, created if missing
    ///   - maxBytes: the maximum size of a file
    public init(_ runner: ResourceJobRunner, folder: String, maxBytes: Int64) {
        self.runner = runner
        self.folder = folder
        self.maxBytes = maxBytes
    }

    /// Runs a job, with a pipe as its last file: each attempt has its own, because a worker that is killed may leave a
    /// part of a record in it.
    ///
    /// - Parameters:
    ///   - digest: digest of the bytes that the job opens
    ///   - progress: called with the number of each record of progress
    /// - Returns: the descriptor of the file, which the caller closes, and the job's result, whose member `size` is the
    ///   size of the file in bytes
    public func run(
        _ job: WorkerJob,
        over digest: String,
        priority: WorkerPriority = .normal,
        progress: @escaping @Sendable (Int64) -> Void
    ) async throws(Failure) -> (descriptor: Int32, result: WorkerResult) {
        let target = try Self.makeFile(in: folder)
        do throws(Failure) {
            let outcome: Result<WorkerResult, Failure>
            do throws(WorkerFailure) {
                outcome = try await runner.run(over: digest) { pool throws(WorkerFailure) in
                    try await attempt(job, in: pool, priority, target, progress)
                }
            } catch {
                throw Failure.worker(error)
            }
            let result = try outcome.get()
            guard let size = result.result["size"]?.intValue, (1...maxBytes).contains(size) else { throw .malformed }
            // The worker may have written more.
            guard ftruncate(target, off_t(size)) == 0 else { throw .notWritten(errno: errno) }
            return (target, result)
        } catch {
            close(target)
            throw error
        }
    }

    /// Runs a job once.
    ///
    /// - Returns: a failure if another attempt would not help
    private func attempt(
        _ job: WorkerJob,
        in pool: WorkerPool,
        _ priority: WorkerPriority,
        _ target: Int32,
        _ progress: @escaping @Sendable (Int64) -> Void
    ) async throws(WorkerFailure) -> Result<WorkerResult, Failure> {
        // Removes the output of an earlier attempt.
        guard ftruncate(target, 0) == 0 else { return .failure(.notWritten(errno: errno)) }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return .failure(.notWritten(errno: errno)) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let receiver = WorkerOutputReceiver(pipe: ends[0], file: target, maxBytes: maxBytes, progress: progress)
        guard receiver.start() else {
            for end in ends { close(end) }
            throw .unavailable("no thread can be started for its output; raise the limit of processes")
        }
        var job = job
        job.files.append(ends[1])
        let outcome: Result<WorkerResult, WorkerFailure>
        do throws(WorkerFailure) {
            outcome = .success(try await pool.run(job, priority: priority))
        } catch {
            outcome = .failure(error)
        }
        // The receiver ends when the last copy of this end is closed. A worker may still have one.
        close(ends[1])
        receiver.jobEnded.signal()
        let problem = await receiver.end()
        if case .notWritten(let number) = problem { return .failure(.notWritten(errno: number)) }
        let result = try outcome.get()
        return problem == nil ? .success(result) : .failure(.malformed)
    }

    static func makeFile(in folder: String) throws(Failure) -> Int32 {
        // `__O_TMPFILE` is `O_TMPFILE`, which Swift does not import.
        let flags = O_RDWR | O_CLOEXEC | __O_TMPFILE
        var nameless = open(folder, flags, 0o600)
        if nameless < 0, errno == ENOENT {
            // The folder of a cache may be deleted at any time.
            try? FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o750]
            )
            nameless = open(folder, flags, 0o600)
        }
        if nameless >= 0 { return nameless }
        var random = SystemRandomNumberGenerator()
        let path = "\(folder)/.output-\(random.nextHexadecimal(byteCount: 8))"
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .notWritten(errno: errno) }
        unlink(path)
        return file
    }
}

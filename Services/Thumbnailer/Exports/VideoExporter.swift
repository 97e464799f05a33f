import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoModel
import Storage

/// Makes one exported file: a worker encodes it, and the service writes it.
struct VideoExporter: Sendable {
    let resources: ResourceFolder
    let workers: WorkerPool
    /// The folder of the files, which have no names.
    let folder: String
    let maxBytes: Int64
    /// Reports bytes that made a worker crash or hang.
    let report: @Sendable (ResourceJobRunner.WorkerFault) async -> Void

    /// - Parameter progress: called with the microseconds of the output that are made
    func export(
        _ plan: VideoExportPlan,
        progress: @escaping @Sendable (Int64) -> Void
    ) async throws(RPCError) -> ExportedVideo {
        let source = try resources.open(plan.video.digest)
        let target = try makeFile()
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            let number = errno
            close(target)
            throw RPCError.exportNotWritten(errno: number)
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let receiver = ExportReceiver(pipe: ends[0], file: target, maxBytes: maxBytes, progress: progress)
        receiver.start()
        let job = WorkerJob(
            method: VideoExportWorker.method,
            params: plan.params(maxBytes: maxBytes),
            files: [source.descriptor, ends[1]]
        )
        let outcome: Result<WorkerResult, WorkerFailure>
        do throws(WorkerFailure) {
            outcome = .success(try await ResourceJobRunner(workers, report: report).run(job, over: plan.video.digest))
        } catch {
            outcome = .failure(error)
        }
        withExtendedLifetime(source) {}
        // The receiver ends when the last copy of this end is closed.
        close(ends[1])
        let problem = await receiver.end()
        do throws(RPCError) {
            if case .notWritten(let number) = problem { throw RPCError.exportNotWritten(errno: number) }
            let result: WorkerResult
            do throws(WorkerFailure) { result = try outcome.get() } catch { throw error.rpcError }
            guard problem == nil else {
                throw .invalidResult("is not a part of a file")
            }
            return try finished(target, result)
        } catch {
            close(target)
            throw error
        }
    }

    private func finished(_ target: Int32, _ result: WorkerResult) throws(RPCError) -> ExportedVideo {
        guard let size = result.result["size"]?.intValue, (1...maxBytes).contains(size),
            let width = result.result["pixelWidth"]?.intValue, let height = result.result["pixelHeight"]?.intValue,
            (1...65_535).contains(width), (1...65_535).contains(height)
        else { throw .invalidResult("does not describe the exported file") }
        // A first attempt may have written more.
        guard ftruncate(target, off_t(size)) == 0 else { throw RPCError.exportNotWritten(errno: errno) }
        return ExportedVideo(descriptor: target, size: size, pixelWidth: Int(width), pixelHeight: Int(height))
    }

    private func makeFile() throws(RPCError) -> Int32 {
        // `__O_TMPFILE` is `O_TMPFILE`, which Swift does not import.
        let nameless = open(folder, O_RDWR | O_CLOEXEC | __O_TMPFILE, 0o600)
        if nameless >= 0 { return nameless }
        var random = SystemRandomNumberGenerator()
        let path = "\(folder)/.export-\(String(random.next(), radix: 16))"
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw RPCError.exportNotWritten(errno: errno) }
        unlink(path)
        return file
    }
}

import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoModel
import Storage

/// Exports one file. A worker encodes it, and the service writes it.
struct VideoExporter: Sendable {
    let resources: ResourceFolder
    let workers: WorkerPool
    /// The folder in which the files are created, without names.
    let folder: String
    /// The maximum size of a file.
    let maxBytes: Int64
    /// Reports bytes that made a worker crash or hang.
    let report: @Sendable (ResourceJobRunner.WorkerFault) async -> Void

    /// - Parameter progress: called with the microseconds of video that were exported so far
    func export(
        _ plan: VideoExportPlan,
        progress: @escaping @Sendable (Int64) -> Void
    ) async throws(RPCError) -> ExportedVideo {
        let source = if let file = plan.file { file } else { try resources.open(plan.video.digest) }
        let runner = ResourceJobRunner(workers, resources: resources, report: report)
        let files = WorkerFileJob(runner, folder: folder, maxBytes: maxBytes)
        let job = WorkerJob(
            method: VideoExportWorker.method,
            params: plan.params(maxBytes: maxBytes),
            files: [source.descriptor]
        )
        do throws(WorkerFileJob.Failure) {
            let output = try await files.run(job, over: plan.video.digest, progress: progress)
            withExtendedLifetime(source) {}
            return try Self.finished(output.descriptor, output.result)
        } catch {
            switch error {
            case .worker(let failure): throw failure.rpcError
            case .notWritten(let number): throw RPCError.exportNotWritten(errno: number)
            case .malformed: throw RPCError.invalidResult("is not a part of a file")
            }
        }
    }

    private static func finished(_ target: Int32, _ result: WorkerResult) throws(WorkerFileJob.Failure) -> ExportedVideo
    {
        guard let size = result.result["size"]?.intValue, let width = result.result["pixelWidth"]?.intValue,
            let height = result.result["pixelHeight"]?.intValue, (1...65_535).contains(width),
            (1...65_535).contains(height)
        else {
            close(target)
            throw .malformed
        }
        return ExportedVideo(descriptor: target, size: size, pixelWidth: Int(width), pixelHeight: Int(height))
    }
}

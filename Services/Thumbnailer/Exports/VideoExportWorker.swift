import Contracts
import Glibc
import Hosting
import JSONValue
import Video

/// The worker's side of exports. It writes the file as records into a pipe, because a worker may not write files.
enum VideoExportWorker {
    static let method = "exportVideo"

    static func export(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        guard job.files.count == 2, let preset = job.params["preset"]?.stringValue.flatMap(VideoExportPreset.init),
            let maxBytes = job.params["maxBytes"]?.intValue
        else { throw WorkerJobError(name: "invalid_request", message: "an export needs a file, a pipe and a preset") }
        // Other work has priority.
        nice(10)
        var settings = preset.settings
        settings.maxBytes = maxBytes
        settings.seconds = 0.9 * Double(WorkerProcess.limits.wallSeconds)
        settings.threads = min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        let pipe = job.files[1]
        var limits = VideoLimits()
        // The whole file is read, and parts of it twice.
        limits.bytes = .max
        limits.totalSeconds = settings.seconds
        do throws(VideoError) {
            let file = try VideoFile(
                descriptor: job.files[0],
                range: VideoWorker.part(job, job.files[0]),
                limits: limits,
                isThorough: true
            )
            // From here on, a timeout is attributed to the request and not to the file.
            WorkerProcess.enter(.working)
            let sink = VideoExportSink { bytes, position in
                WorkerOutputRecord.bytes(position, bytes.count).write(to: pipe, bytes)
            } progress: { time in
                WorkerOutputRecord.progress(time).write(to: pipe)
            }
            var edit: VideoEdit?
            if job.params["appliesSlowMotion"]?.boolValue == true, let map = VideoTimeMap(slowMotion: file.info) {
                edit = VideoEdit()
                edit?.timeMap = map
            }
            let result = try file.export(settings, edit, to: sink)
            return WorkerResult(
                result: [
                    "size": .int(result.size), "pixelWidth": JSON(result.pixelWidth),
                    "pixelHeight": JSON(result.pixelHeight),
                ]
            )
        } catch {
            throw WorkerJobError(error)
        }
    }
}

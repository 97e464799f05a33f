import Contracts
import Glibc
import Hosting
import ImageFormats
import Imaging
import JSONValue
import Metadata
import PhotoModel
import Video

/// The jobs of an editor's worker process that open videos.
enum VideoEditWorker {
    static let renderMethod = "renderVideo"
    static let frameMethod = "renderFrame"
    static let keyFrameMethod = "renderKeyFrame"
    /// The constant rate factor of renders, low because they are viewed at full size and edited again.
    static let renderQuality = 16

    /// Renders a video into the pipe that is the job's second file.
    static func render(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        guard job.files.count == 2 else {
            throw WorkerJobError(name: "invalid_request", message: "a render of a video needs a file and a pipe")
        }
        let (plan, list) = try read(job)
        // Other work has priority.
        nice(10)
        var settings = VideoExportSettings()
        settings.quality = renderQuality
        settings.maxBytes = plan.maxBytes
        settings.seconds = 0.9 * Double(WorkerProcess.limits.wallSeconds)
        settings.threads = min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        var limits = VideoLimits()
        // The whole file is read, some of it twice.
        limits.bytes = .max
        limits.totalSeconds = settings.seconds
        let pipe = job.files[1]
        do {
            let file = try open(job, plan, limits: limits, isThorough: true)
            WorkerProcess.enter(.working)
            let info = file.info
            let edit = try VideoEdit(list.fitted(to: plan.maximumSide), info)
            settings.isQuickTime = plan.isQuickTime
            // Colours are computed in sRGB. All other changes preserve high dynamic range.
            settings.isHEVC = info.isHDR && edit.frameChanges?.recolour == nil && edit.frameChanges?.overlay == nil
            let sink = VideoExportSink { bytes, position in
                WorkerOutputRecord.bytes(position, bytes.count).write(to: pipe, bytes)
            } progress: { time in
                WorkerOutputRecord.progress(time).write(to: pipe)
            }
            let result = try file.export(settings, edit, to: sink)
            let length = (edit.end ?? info.duration) - edit.start
            return WorkerResult(
                result: [
                    "size": .int(result.size),
                    "mimeType": .string(plan.isQuickTime ? "video/quicktime" : "video/mp4"),
                    "pixelWidth": JSON(result.pixelWidth),
                    "pixelHeight": JSON(result.pixelHeight),
                    "duration": .int(Int64(Double(max(0, length)) / edit.speed)),
                ]
            )
        } catch {
            throw WorkerJobError(edit: error)
        }
    }

    /// Renders one frame like a photo.
    static func frame(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let (plan, list) = try read(job)
        do {
            if let kind = VideoAdjustments.unsupported(list) { throw WorkerJobError.operationOfPhotos(kind) }
            let file = try open(job, plan)
            let part = try VideoEdit.part(list, of: file.info)
            let time = plan.frameTime ?? (part.start > 0 ? part.start : nil)
            let (bytes, shown) = try still(file, at: time)
            if part.start > 0 || part.end != nil {
                // A render would refuse a part in which no frame begins.
                let first = time == part.start ? shown : try frameTime(file, atOrAfter: part.start)
                guard first >= part.start, first < part.end ?? .max else { throw VideoError.emptyPart }
            }
            let image = try AdjustmentRendering.render(
                bytes,
                list,
                quality: EditWorker.previewQuality,
                maximumSide: plan.maximumSide ?? 1024
            )
            let render = Render(
                mimeType: image.format.mimeType,
                pixelWidth: image.pixelWidth,
                pixelHeight: image.pixelHeight
            )
            return WorkerResult(result: render.json, attachments: [image.bytes])
        } catch {
            throw WorkerJobError(edit: error)
        }
    }

    /// Renders a frame of a Live Photo's video as its still, with the metadata of the photo, which is the second file.
    static func keyFrame(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let (plan, list) = try read(job)
        do {
            let bytes = try still(try open(job, plan), at: plan.frameTime).bytes
            let image = try AdjustmentRendering.render(
                bytes,
                list,
                format: .jpeg,
                quality: plan.maximumSide == nil ? EditWorker.renderQuality : EditWorker.previewQuality,
                maximumSide: plan.maximumSide
            )
            var render = Render(
                mimeType: image.format.mimeType,
                pixelWidth: image.pixelWidth,
                pixelHeight: image.pixelHeight
            )
            var attachment = image.bytes
            if plan.maximumSide == nil {
                WorkerProcess.enter(.reading)
                let photo = try job.contents(ofFile: 1, limit: EditWorker.largestSource)
                // The gain map of the photo is that of another frame.
                render.dropsGainMap = GainMapEdit.isPresent(in: photo)
                attachment = try MetadataWriter.transfer(
                    from: photo,
                    to: image.bytes,
                    width: image.pixelWidth,
                    height: image.pixelHeight
                )
            }
            return WorkerResult(result: render.json, attachments: [attachment])
        } catch let error as MetadataError {
            throw .invalidRender(error)
        } catch {
            throw WorkerJobError(edit: error)
        }
    }

    /// Returns the contents of an image file, or a frame of a video as such a file.
    ///
    /// - Parameter time: microseconds; nil for the first frame that is not nearly one colour
    static func imageBytes(
        _ job: WorkerJob,
        file index: Int,
        at time: Int64? = nil
    ) throws(WorkerJobError) -> [UInt8] {
        var head = [UInt8](repeating: 0, count: VideoFileType.sniffedBytes)
        if job.files.indices.contains(index) {
            head.removeLast(head.count - max(0, pread(job.files[index], &head, head.count, 0)))
        }
        guard VideoFileType.sniff(head) != nil else {
            return try job.contents(ofFile: index, limit: EditWorker.largestSource)
        }
        do {
            return try still(try open(job, nil, file: index), at: time).bytes
        } catch {
            throw WorkerJobError(edit: error)
        }
    }

    /// Returns the time of the first frame at or after a time, or of the last frame, in microseconds.
    private static func frameTime(_ file: borrowing VideoFile, atOrAfter time: Int64) throws -> Int64 {
        try file.frame(.at(time, tolerance: 0), width: 16, height: 16).time
    }

    /// Returns an upright frame as a PNG file, and its time in microseconds.
    private static func still(_ file: borrowing VideoFile, at time: Int64?) throws -> (bytes: [UInt8], time: Int64) {
        let (width, height) = (file.storedWidth, file.storedHeight)
        let longest = max(width, height)
        let whole = RenditionOptions(target: .size(width: longest, height: longest), format: .png)
        let rendition = try FrameRendition(width: width, height: height, orientation: file.orientation, [whole])
        let position = time.map { FramePosition.at($0, tolerance: 0) } ?? .automatic
        let frame = try file.frame(position, width: rendition.decodedWidth, height: rendition.decodedHeight)
        let images = try frame.withPixels { pixels throws(ImagingError) in try rendition.render(pixels) }
        return (images.first?.bytes ?? [], frame.time)
    }

    private static func open(
        _ job: WorkerJob,
        _ plan: VideoRenderPlan?,
        file index: Int = 0,
        limits: VideoLimits = VideoLimits(),
        isThorough: Bool = false
    ) throws -> VideoFile {
        guard job.files.indices.contains(index) else {
            throw WorkerJobError(name: "invalid_request", message: "the job has no file")
        }
        WorkerProcess.enter(.reading)
        let fileSize = Int64(max(0, lseek(job.files[index], 0, SEEK_END)))
        var part: Range<Int64> = 0..<fileSize
        if let offset = plan?.offset, let size = plan?.size, offset <= fileSize, size <= fileSize - offset {
            part = offset..<offset + size
        }
        return try VideoFile(descriptor: job.files[index], range: part, limits: limits, isThorough: isThorough)
    }

    private static func read(_ job: WorkerJob) throws(WorkerJobError) -> (VideoRenderPlan, AdjustmentList) {
        let plan: VideoRenderPlan
        do throws(JSONProblem) { plan = try VideoRenderPlan(json: job.params) } catch {
            throw WorkerJobError(name: "invalid_request", message: error.description)
        }
        do throws(AdjustmentError) { return (plan, try AdjustmentList(json: plan.adjustments)) } catch {
            throw .invalidAdjustments(error)
        }
    }
}

import Glibc
import Hosting
import ImageFormats
import Imaging
import JSONValue
import Video

/// The jobs of a worker that open videos.
///
/// A video's hash is not checked, because the whole file would have to be read for one frame.
enum VideoWorker {
    /// Renders frames of one video in one pass over the file, in the order of the frames' times.
    static func renditions(_ plans: [RenditionPlan], _ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let file = try open(job)
        var results = [(entry: JSON, bytes: [UInt8]?)](repeating: (.null, nil), count: plans.count)
        let order = plans.indices.sorted { (plans[$0].frame?.time ?? -1) < (plans[$1].frame?.time ?? -1) }
        var next = order.startIndex
        let start = ContinuousClock.now
        while next < order.endIndex {
            // Frames that do not fit into this job's time are left to another job.
            if next > order.startIndex, start.duration(to: .now) > .seconds(WorkerProcess.limits.wallSeconds) * 0.4 {
                for index in order[next...] { results[index].entry = deferred }
                break
            }
            let frame = plans[order[next]].frame
            let same = order[next...].prefix { plans[$0].frame == frame }
            next = same.endIndex
            for (index, outcome) in zip(same, images(same.map { plans[$0] }, file)) {
                switch outcome {
                case .success(let (image, time)):
                    results[index] = (EncodedRendition(image, frameTime: time).json, image.bytes)
                case .failure(let error):
                    results[index].entry = ["error": ["name": .string(error.name), "message": .string(error.message)]]
                }
            }
        }
        return WorkerResult(
            result: ["images": .array(results.map(\.entry))],
            attachments: results.compactMap(\.bytes)
        )
    }

    /// Renders the key frame before a frame, as a degraded image that takes less time to decode.
    static func preview(_ plan: RenditionPlan, _ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        var degraded = plan
        degraded.frame?.tolerance = .max
        let (image, time) = try images([degraded], try open(job))[0].get()
        return WorkerResult(result: EncodedRendition(image, frameTime: time).json, attachments: [image.bytes])
    }

    /// The entry of an image that was not begun.
    private static let deferred: JSON = ["error": ["name": .string(deferredName), "message": "another job renders it"]]
    static let deferredName = "deferred"

    static let structureMethod = "videoStructure"

    /// Describes the tracks of a video, with their edit lists.
    static func structure(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let file = try open(job, isThorough: true)
        guard let descriptor = job.files.first else { return WorkerResult() }
        let part = part(job, descriptor)
        let boxes = MovieTrack.all(size: part.count) { offset, count in bytes(descriptor, part, offset, count) }
        return WorkerResult(result: VideoStructure(file.info, boxes, audioTrack: file.audioTrack).json)
    }

    /// Reads bytes of the part of a file that is the video.
    private static func bytes(_ descriptor: Int32, _ part: Range<Int64>, _ offset: Int, _ count: Int) -> [UInt8] {
        let count = max(0, min(count, part.count - offset))
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            used = max(0, pread(descriptor, buffer.baseAddress, count, off_t(part.lowerBound) + off_t(offset)))
        }
    }

    static let describeMethod = "describeVideo"

    /// Describes a video and, if its index is at its end, the order in which a player can begin before it has all
    /// bytes. The moved index is the attachment.
    static func describe(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        var description = VideoDescription(try open(job, isThorough: true).info)
        guard let descriptor = job.files.first else { return WorkerResult() }
        let part = part(job, descriptor)
        let order = FastStart(size: part.count) { offset, count in bytes(descriptor, part, offset, count) }
        description.isFastStart = order.isPossible
        guard let moved = order.moved else { return WorkerResult(result: description.json) }
        description.movedTo = moved.position
        description.movedFrom = moved.original
        return WorkerResult(result: description.json, attachments: [moved.index])
    }

    /// Returns the range of the video in the file: that in the parameters of the job, else the whole file.
    static func part(_ job: WorkerJob, _ descriptor: Int32) -> Range<Int64> {
        let size = Int64(max(0, lseek(descriptor, 0, SEEK_END)))
        guard let offset = job.params["offset"]?.intValue, let length = job.params["size"]?.intValue,
            (0...size).contains(offset), (0...size - offset).contains(length)
        else { return 0..<size }
        return offset..<offset + length
    }

    static func open(_ job: WorkerJob, isThorough: Bool = false) throws(WorkerJobError) -> VideoFile {
        guard let descriptor = job.files.first else {
            throw WorkerJobError(name: "invalid_request", message: "the job has no file")
        }
        WorkerProcess.enter(.reading)
        var limits = VideoLimits()
        // Less than the job's limit, so that a long video is refused with an error of its own and does not count as one
        // that hangs the worker.
        limits.seconds = min(limits.seconds, 0.4 * Double(WorkerProcess.limits.wallSeconds))
        limits.totalSeconds = 0.8 * Double(WorkerProcess.limits.wallSeconds)
        do throws(VideoError) {
            return try VideoFile(
                descriptor: descriptor,
                range: part(job, descriptor),
                limits: limits,
                isThorough: isThorough
            )
        } catch {
            throw WorkerJobError(error)
        }
    }

    private typealias Outcome = Result<(RenderedImage, time: Int64), WorkerJobError>

    /// Renders images of one frame. If that fails, each is rendered on its own.
    private static func images(_ plans: [RenditionPlan], _ file: borrowing VideoFile) -> [Outcome] {
        do throws(WorkerJobError) {
            return try rendered(plans, file).map { .success($0) }
        } catch {
            guard plans.count > 1 else { return [.failure(error)] }
            return plans.flatMap { images([$0], file) }
        }
    }

    private static func rendered(
        _ plans: [RenditionPlan],
        _ file: borrowing VideoFile
    ) throws(WorkerJobError) -> [(RenderedImage, time: Int64)] {
        WorkerProcess.enter(.reading)
        do {
            var limits = PixelLimits()
            limits.seconds = Double(WorkerProcess.limits.wallSeconds)
            let rendition = try FrameRendition(
                width: file.storedWidth,
                height: file.storedHeight,
                orientation: file.orientation,
                try plans.map { try $0.options },
                limits: limits
            )
            let frame = try file.frame(
                plans.first?.frame?.position ?? .automatic,
                width: rendition.decodedWidth,
                height: rendition.decodedHeight
            )
            let time = frame.time
            return try frame.withPixels { pixels throws(ImagingError) in try rendition.render(pixels) }.map {
                ($0, time)
            }
        } catch let error as VideoError {
            throw WorkerJobError(error)
        } catch let error as ImagingError {
            throw WorkerJobError(name: error.name, message: error.message)
        } catch {
            throw WorkerJobError(name: "internal_error", message: "the frame cannot be rendered")
        }
    }
}

extension WorkerJobError {
    init(_ error: VideoError) { self.init(name: error.name, message: error.message) }
}

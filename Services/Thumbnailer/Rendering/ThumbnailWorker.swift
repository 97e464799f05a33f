import Contracts
import Hosting
import ImageFormats
import Imaging
import JSONValue
import PhotoModel
import Storage
import Video

/// The work of a thumbnailer's worker process: the only code that opens the bytes of images.
enum ThumbnailWorker {
    static let renditionMethod = "rendition"
    static let previewMethod = "preview"
    static let quickMethod = "quick"
    static let inspectMethod = "inspect"
    static let sheetMethod = "sheet"
    static let aboutMethod = "about"

    /// The maximum size of a file that is opened, in bytes.
    static let maxSourceBytes = 512 << 20

    private static let previewHeadBytes = 256 << 10

    static func handle(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        switch job.method {
        case renditionMethod: try renditions(job)
        case previewMethod: try preview(job)
        case quickMethod: try quick(job)
        case inspectMethod: try inspect(job)
        case sheetMethod: try sheet(job)
        case VideoWorker.describeMethod: try VideoWorker.describe(job)
        case VideoWorker.structureMethod: try VideoWorker.structure(job)
        case VideoExportWorker.method: try VideoExportWorker.export(job)
        case aboutMethod: about()
        default: throw WorkerJobError(name: "invalid_request", message: "unknown worker job \(job.method)")
        }
    }

    /// Renders several images from one decode. If that fails, each is rendered on its own, so that one image that fails
    /// does not make the others fail.
    private static func renditions(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let plans = try parsed(RenditionBatch.self, job.params).plans
        if plans.contains(where: { $0.frame != nil }) { return try VideoWorker.renditions(plans, job) }
        guard let digest = plans.first?.digest, plans.allSatisfy({ $0.digest == digest }) else {
            throw WorkerJobError(name: "invalid_request", message: "the images of a job must come from one file")
        }
        let bytes = try job.contents(ofFile: 0, limit: maxSourceBytes)
        guard ResourceDigest(of: bytes).text == digest else {
            throw .differentBytes(digest)
        }
        var result = WorkerResult()
        var entries: [JSON] = []
        for outcome in images(plans, bytes) {
            switch outcome {
            case .success(let image):
                entries.append(EncodedRendition(image).json)
                result.attachments.append(image.bytes)
            case .failure(let error):
                entries.append(["error": ["name": .string(error.name), "message": .string(error.message)]])
            }
        }
        result.result = ["images": .array(entries)]
        return result
    }

    private static func images(_ plans: [RenditionPlan], _ bytes: [UInt8]) -> [Result<RenderedImage, ImagingError>] {
        do throws(ImagingError) {
            var options: [RenditionOptions] = []
            for plan in plans { options.append(try plan.options) }
            var limits = PixelLimits()
            limits.seconds = Double(WorkerProcess.limits.wallSeconds)
            return try RenditionRenderer.renderAll(bytes, options, limits: limits).map { .success($0) }
        } catch {
            guard plans.count > 1 else { return [.failure(error)] }
            return plans.flatMap { images([$0], bytes) }
        }
    }

    private static func preview(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let plan = try parsed(RenditionPlan.self, job.params)
        if plan.frame != nil { return try VideoWorker.preview(plan, job) }
        // A camera's JPEG has its preview at the beginning, so the rest need not be read.
        let head = try job.contents(ofFile: 0, limit: maxSourceBytes, first: previewHeadBytes)
        if ImageFormat.sniff(head) == .jpeg {
            do throws(ImagingError) {
                guard let image = try Preview.embedded(in: head, try plan.options) else { return WorkerResult() }
                return WorkerResult(result: EncodedRendition(image).json, attachments: [image.bytes])
            } catch {
                // The preview may extend beyond the first part.
            }
        }
        return try degraded(job) { bytes throws(ImagingError) in try Preview.embedded(in: bytes, try plan.options) }
    }

    private static func quick(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let plan = try parsed(RenditionPlan.self, job.params)
        guard plan.frame == nil else { return WorkerResult() }
        return try degraded(job) { bytes throws(ImagingError) in try Preview.quick(bytes, try plan.options) }
    }

    /// Renders a degraded image. The file's hash is not checked, because the final image replaces it.
    private static func degraded(
        _ job: WorkerJob,
        _ make: ([UInt8]) throws(ImagingError) -> RenderedImage?
    ) throws(WorkerJobError) -> WorkerResult {
        let bytes = try job.contents(ofFile: 0, limit: maxSourceBytes)
        return try convertingErrors { () throws(ImagingError) in
            guard let image = try make(bytes) else { return WorkerResult() }
            return WorkerResult(result: EncodedRendition(image).json, attachments: [image.bytes])
        }
    }

    private static func inspect(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let bytes = try job.contents(ofFile: 0, limit: maxSourceBytes)
        // The image is not decoded, so even an image that is too large to be rendered is described.
        var limits = PixelLimits()
        limits.jpegPixels = .max
        limits.pixels = .max
        limits.frames = .max
        limits.side = ImageFileInfo.maxSide
        return try convertingErrors { () throws(ImagingError) in
            let info = try ImageProbe.info(of: bytes, limits: limits)
            return WorkerResult(
                result: ImageFileInfo(
                    contentType: info.format.contentType,
                    mimeType: info.format.mimeType,
                    orientation: info.needsOrientation ? info.orientation : 1,
                    pixelWidth: info.pixelWidth,
                    pixelHeight: info.pixelHeight
                ).json
            )
        }
    }

    /// Runs `body` and converts its errors.
    private static func convertingErrors<Value>(
        _ body: () throws(ImagingError) -> Value
    ) throws(WorkerJobError) -> Value {
        do throws(ImagingError) {
            return try body()
        } catch {
            throw WorkerJobError(name: error.name, message: error.message)
        }
    }

    /// Returns this process's libraries and limits.
    private static func about() -> WorkerResult {
        let policy = ImagingLibrary.effectivePolicy
        var json: JSONObject = ["largestSide": JSON(policy.maxSide), "open": JSON(policy.open)]
        json["libavformat"] = .string(VideoFile.versions)
        for (name, version) in ImagingLibrary.versions { json[name] = .string(version) }
        return WorkerResult(result: .object(json))
    }

    private static func sheet(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let plan = try parsed(ContactSheetPlan.self, job.params)
        let bytes = job.attachments.first ?? []
        var offset = 0
        var cells: [ContactSheet.Cell] = []
        for (index, label) in plan.labels.enumerated() {
            let length = index < plan.lengths.count ? plan.lengths[index] : 0
            guard length <= bytes.count - offset else {
                throw WorkerJobError(name: "invalid_request", message: "the images of the sheet are incomplete")
            }
            var cell = ContactSheet.Cell(
                bytes: length == 0 ? nil : Array(bytes[offset..<(offset + length)]),
                label: label
            )
            if index < plan.problems.count, !plan.problems[index].isEmpty { cell.problem = plan.problems[index] }
            cells.append(cell)
            offset += length
        }
        let layout: ContactSheet.Layout = plan.layout == .grid ? .grid : .justified
        return try convertingErrors { () throws(ImagingError) in
            let image = try ContactSheet.render(cells, columns: plan.columns, cellSide: plan.cell, layout: layout)
            return WorkerResult(result: EncodedRendition(image).json, attachments: [image.bytes])
        }
    }

    /// Returns the parameters of a job.
    private static func parsed<Plan: JSONTabled>(_: Plan.Type, _ json: JSON) throws(WorkerJobError) -> Plan {
        do throws(JSONProblem) { return try Plan(json: json) } catch {
            throw WorkerJobError(name: "invalid_request", message: error.description)
        }
    }
}

extension EncodedRendition {
    /// Describes a rendered image, without its bytes.
    ///
    /// - Parameter frameTime: of a video, the time of the frame in microseconds
    init(_ image: RenderedImage, frameTime: Int64? = nil) {
        self.init(
            bytes: [],
            mimeType: image.format.mimeType,
            pixelWidth: image.pixelWidth,
            pixelHeight: image.pixelHeight,
            isUpscaled: image.isUpscaled,
            frameTime: frameTime,
            headroom: image.headroom
        )
    }
}

import Contracts
import Hosting
import Imaging
import ImageFormats
import JSONValue
import Metadata
import PhotoModel
import Storage

/// A finished render.
struct Render: Sendable, Equatable, JSONTabled {
    var bytes: [UInt8] = []
    /// The catalog's upload with the bytes, for videos.
    var upload: String?
    var mimeType = ""
    var pixelWidth = 0
    var pixelHeight = 0
    /// The engine that rendered it, and its version.
    var engine = RenderEngine.fused
    var engineVersion = AppliedEngine.defaultEngine.version
    /// True if the source has a gain map and the render has none.
    var dropsGainMap = false

    /// The engine as the list names it; nil for the default.
    var appliedEngine: AppliedEngine? {
        let applied = AppliedEngine(engine, version: engineVersion)
        return applied == .defaultEngine ? nil : applied
    }

    static let table = JSONTable(
        "Render",
        "A finished render.",
        unknown: .ignored,
        blank: Render(),
        [
            .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
            .required("pixelWidth", \.pixelWidth, .count(1...1_000_000), "Width."),
            .required("pixelHeight", \.pixelHeight, .count(1...1_000_000), "Height."),
            .defaulted("engine", \.engine, .name(RenderEngine.self), "The engine that rendered.", default: .fused),
            .defaulted(
                "engineVersion",
                \.engineVersion,
                .text(maxBytes: 64),
                "Its version.",
                default: AppliedEngine.defaultEngine.version
            ),
            .defaulted("dropsGainMap", \.dropsGainMap, .flag, "True if a gain map was lost.", default: false),
        ]
    )
}

/// The work of an editor's worker process: the only code that opens the bytes of images.
enum EditWorker {
    static let renderMethod = "render"
    /// The JPEG quality of renders, high because they are viewed at full size and edited again.
    static let renderQuality = 92
    static let previewQuality = 85
    /// The largest file that is opened, in bytes.
    static let largestSource = 512 << 20

    static let suggestMethod = "suggest"
    static let inspectMethod = "look"
    static let compareMethod = "compare"
    static let describeMethod = "describe"

    /// Runs a job. Equal jobs give equal bytes.
    static func handle(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        switch job.method {
        case renderMethod: try render(job)
        case suggestMethod: try suggest(job)
        case inspectMethod: try inspect(job)
        case compareMethod: try compare(job)
        case describeMethod: try describe(job)
        case VideoEditWorker.renderMethod: try VideoEditWorker.render(job)
        case VideoEditWorker.frameMethod: try VideoEditWorker.frame(job)
        case VideoEditWorker.keyFrameMethod: try VideoEditWorker.keyFrame(job)
        default: throw WorkerJobError(name: "invalid_request", message: "unknown worker job \(job.method)")
        }
    }

    /// Returns operations that would improve an image, or a frame of a video.
    private static func suggest(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let source = try VideoEditWorker.imageBytes(job, file: 0)
        do throws(ImagingError) {
            return WorkerResult(result: AdjustmentList(operations: try AutoEnhance.suggest(for: source)).json)
        } catch {
            throw WorkerJobError(name: error.name, message: error.message)
        }
    }

    /// Draws two images, or frames of two videos, side by side in one.
    private static func compare(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let times = job.params["frameTimes"]?.arrayValue?.map(\.intValue) ?? []
        let before = try VideoEditWorker.imageBytes(job, file: 0, at: times.first ?? nil)
        let after = try VideoEditWorker.imageBytes(job, file: 1, at: times.last ?? nil)
        do throws(ImagingError) {
            let side = Int(job.params["maximumSide"]?.intValue ?? 1024)
            let image = try ComparisonImage.render(
                before,
                after,
                maximumSide: side,
                isLabelled: job.params["labels"]?.boolValue ?? false
            )
            let render = Render(
                mimeType: image.format.mimeType,
                pixelWidth: image.pixelWidth,
                pixelHeight: image.pixelHeight
            )
            return WorkerResult(result: render.json, attachments: [image.bytes])
        } catch {
            throw WorkerJobError(name: error.name, message: error.message)
        }
    }

    /// Returns the orientation of an image's pixels.
    private static func inspect(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let source = try job.contents(ofFile: 0, limit: largestSource)
        do throws(ImagingError) {
            let info = try ImageProbe.info(of: source)
            return WorkerResult(result: ["orientation": JSON(info.format.isOrientedByDecoder ? 1 : info.orientation)])
        } catch {
            throw WorkerJobError(name: error.name, message: error.message)
        }
    }

    /// Writes a list as a file for other programs.
    private static func describe(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let (plan, list) = try read(job.params["plan"] ?? .null)
        let form = job.params["form"]?.stringValue.flatMap(DescribeEdit.Form.init(rawValue:))
        let original = form == .convert ? try source(of: job, plan) : []
        let bytes: [UInt8]
        do throws(ImagingError) {
            switch form {
            case .cube: bytes = try AdjustmentDescription.cube(list, title: "Safelight")
            case .hald: bytes = try AdjustmentDescription.hald(list)
            default: bytes = try AdjustmentDescription.script(original, list, quality: renderQuality)
            }
        } catch {
            throw WorkerJobError(name: error.name, message: error.message)
        }
        return WorkerResult(result: [:], attachments: [bytes])
    }

    private static func source(of job: WorkerJob, _ plan: RenderPlan) throws(WorkerJobError) -> [UInt8] {
        let source = try job.contents(ofFile: 0, limit: largestSource)
        guard ResourceDigest(of: source).text == plan.digest else {
            throw .differentBytes(plan.digest)
        }
        return source
    }

    private static func render(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        let (plan, list) = try read(job.params)
        let source = try source(of: job, plan)
        var render = try renderedImage(of: source, list, plan)
        let bytes = render.bytes
        render.bytes = []
        return WorkerResult(result: render.json, attachments: [bytes])
    }

    private static func renderedImage(
        of source: [UInt8],
        _ list: AdjustmentList,
        _ plan: RenderPlan
    ) throws(WorkerJobError) -> Render {
        let image: RenderedImage
        var limits = PixelLimits()
        limits.seconds = Double(WorkerProcess.limits.wallSeconds)
        do throws(ImagingError) {
            image = try AdjustmentRendering.render(
                source,
                list,
                format: .jpeg,
                quality: plan.maximumSide == nil ? renderQuality : previewQuality,
                maximumSide: plan.maximumSide,
                limits: limits,
                engine: plan.engine
            )
        } catch {
            throw WorkerJobError(name: error.name, message: error.message)
        }
        var render = Render(
            bytes: image.bytes,
            mimeType: image.format.mimeType,
            pixelWidth: image.pixelWidth,
            pixelHeight: image.pixelHeight,
            engine: plan.engine,
            engineVersion: version(of: plan.engine, list)
        )
        // A preview is temporary and carries no metadata, so it does not reveal a location.
        guard plan.maximumSide == nil else { return render }
        // The metadata is copied from the source.
        WorkerProcess.enter(.reading)
        do throws(MetadataError) {
            render.bytes = try MetadataWriter.transfer(
                from: source,
                to: image.bytes,
                width: image.pixelWidth,
                height: image.pixelHeight
            )
        } catch {
            throw .invalidRender(error)
        }
        switch GainMapEdit.apply(list, to: source, rendered: render.bytes, limits: limits) {
        case .none: break
        case .kept(let bytes): render.bytes = bytes
        case .dropped: render.dropsGainMap = true
        }
        return render
    }

    /// Returns the version that is needed to make the same pixels again. ImageMagick renders effects, also with the
    /// fused engine.
    private static func version(of engine: RenderEngine, _ list: AdjustmentList) -> String {
        let magick = ImagingLibrary.versions["imagemagick"] ?? ""
        guard engine == .fused else { return magick }
        let hasEffects = list.operations.contains { [.effect, .frame].contains($0.kind.stage) && !$0.isNeutral }
        return AppliedEngine.defaultEngine.version + (hasEffects ? "+\(magick)" : "")
    }

    private static func read(_ json: JSON) throws(WorkerJobError) -> (RenderPlan, AdjustmentList) {
        let plan: RenderPlan
        do throws(JSONProblem) { plan = try RenderPlan(json: json) } catch {
            throw WorkerJobError(name: "invalid_request", message: error.description)
        }
        do throws(AdjustmentError) { return (plan, try AdjustmentList(json: plan.adjustments)) } catch {
            throw .invalidAdjustments(error)
        }
    }
}

import Contracts
import Hosting
import Imaging
import JSONValue
import PhotoModel
import Storage

/// What a worker process of the thumbnailer does: the only place where the bytes of pictures are opened.
enum ThumbnailWork {
    static let renditionMethod = "rendition"
    static let sheetMethod = "sheet"
    static let aboutMethod = "about"

    /// The largest file that is opened, in bytes.
    static let largestSource = 512 << 20

    static func handle(_ job: WorkerJob) throws(WorkerRefusal) -> WorkerResult {
        switch job.method {
        case renditionMethod: try rendition(job)
        case sheetMethod: try sheet(job)
        case aboutMethod: about()
        default: throw WorkerRefusal(name: "invalid_request", message: "no work is called \(job.method)")
        }
    }

    private static func rendition(_ job: WorkerJob) throws(WorkerRefusal) -> WorkerResult {
        let plan = try decoded(RenditionPlan.self, job.params)
        let bytes = try job.contents(ofFile: 0, limit: largestSource)
        guard ResourceDigest(of: bytes).text == plan.digest else {
            throw WorkerRefusal(
                name: Refusal.resourceChanged.rawValue,
                message: "the stored bytes are not those of \(plan.digest); put back the file from a backup"
            )
        }
        do throws(ImagingError) {
            let image = try Rendition.render(bytes, try plan.options)
            let result = StoredRendition(
                bytes: [],
                mimeType: image.format.mimeType,
                pixelWidth: image.pixelWidth,
                pixelHeight: image.pixelHeight,
                isUpscaled: image.isUpscaled
            )
            return WorkerResult(result: result.json, attachments: [image.bytes])
        } catch {
            throw WorkerRefusal(name: error.name, message: error.message)
        }
    }

    /// The libraries of this process, and what they may do here.
    private static func about() -> WorkerResult {
        let policy = ImagingLibrary.policyInForce
        var json: JSONObject = ["largestSide": JSON(policy.largestSide), "open": JSON(policy.open)]
        for (name, version) in ImagingLibrary.versions { json[name] = .string(version) }
        return WorkerResult(result: .object(json))
    }

    private static func sheet(_ job: WorkerJob) throws(WorkerRefusal) -> WorkerResult {
        let plan = try decoded(SheetPlan.self, job.params)
        let bytes = job.attachments.first ?? []
        var offset = 0
        var cells: [ContactSheet.Cell] = []
        for (index, label) in plan.labels.enumerated() {
            let length = index < plan.lengths.count ? plan.lengths[index] : 0
            guard length <= bytes.count - offset else {
                throw WorkerRefusal(name: "invalid_request", message: "the pictures of the sheet are not complete")
            }
            cells.append(
                ContactSheet.Cell(bytes: length == 0 ? nil : Array(bytes[offset..<(offset + length)]), label: label)
            )
            offset += length
        }
        do throws(ImagingError) {
            let image = try ContactSheet.render(cells, columns: plan.columns, cellSide: plan.cell)
            let result = StoredRendition(
                bytes: [],
                mimeType: image.format.mimeType,
                pixelWidth: image.pixelWidth,
                pixelHeight: image.pixelHeight,
                isUpscaled: false
            )
            return WorkerResult(result: result.json, attachments: [image.bytes])
        } catch {
            throw WorkerRefusal(name: error.name, message: error.message)
        }
    }

    private static func decoded<Plan: JSONTabled>(_: Plan.Type, _ json: JSON) throws(WorkerRefusal) -> Plan {
        do throws(JSONProblem) { return try Plan(json: json) } catch {
            throw WorkerRefusal(name: "invalid_request", message: error.description)
        }
    }
}

extension RenditionPlan {
    /// The same, in the words of the room Imaging.
    var options: RenditionOptions {
        get throws(ImagingError) {
            guard let format = ImageFormat(rawValue: format.rawValue) else {
                throw .invalidOptions("\(format.rawValue) cannot be written")
            }
            let target: RenditionOptions.Target =
                switch targetSize {
                case .maximum: .maximum
                case .size(let width, let height): .size(width: width, height: height)
                }
            let resize: RenditionOptions.ResizeMode =
                switch resizeMode {
                case .none: .none
                case .fast: .fast
                case .exact: .exact
                }
            return RenditionOptions(
                target: target,
                contentMode: contentMode == .aspectFit ? .aspectFit : .aspectFill,
                resizeMode: resize,
                crop: crop,
                format: format,
                quality: max(1, quality)
            )
        }
    }
}

import Basics
import Contracts
import Hosting
import JSONValue
import PhotoModel
import Storage

/// Renders images of stored bytes in worker processes.
///
/// Quick jobs have a worker of their own, so that a degraded image never waits behind a large one.
struct Renderer: Sendable {
    let resources: ResourceFolder
    let workers: WorkerPool
    let quickWorkers: WorkerPool
    /// Reports bytes that made a worker crash or hang.
    let report: @Sendable (ResourceJobRunner.WorkerFault) async -> Void

    /// Renders several images from one decode of one file. Returns an outcome for each; nil for an image that is left
    /// to another call, because together they would take too long. Other jobs can run between the calls.
    ///
    /// If the job exceeds the time limit, all images are left to other calls, which render them one by one, so that one
    /// image does not make the others fail.
    func renditions(_ plans: [RenditionPlan]) async -> [Result<EncodedRendition, RPCError>?] {
        do throws(WorkerFailure) {
            let result = try await rendered(plans)
            do throws(RPCError) {
                let outcomes = try result.get()
                // If this call rendered no image, another call would render none either.
                return outcomes.contains { $0 != nil } ? outcomes : plans.map { _ in .failure(.jobTooLong) }
            } catch {
                return plans.map { _ in .failure(error) }
            }
        } catch {
            return plans.map { _ in error.isOfRequest && plans.count > 1 ? nil : .failure(error.rpcError) }
        }
    }

    private func rendered(
        _ plans: [RenditionPlan]
    ) async throws(WorkerFailure) -> Result<[Result<EncodedRendition, RPCError>?], RPCError> {
        guard let digest = plans.first?.digest else { return .success([]) }
        let file: ResourceFile
        do throws(RPCError) { file = try resources.open(digest) } catch { return .failure(error) }
        let job = WorkerJob(
            method: ThumbnailWorker.renditionMethod,
            params: RenditionBatch(plans: plans).json,
            files: [file.descriptor]
        )
        let runner = ResourceJobRunner(workers, resources: resources, report: report)
        let result = try await runner.run(job, over: digest)
        // The worker uses the descriptor until here.
        return withExtendedLifetime(file) {
            do throws(RPCError) { return .success(try Self.outcomes(result, count: plans.count)) } catch {
                return .failure(error)
            }
        }
    }

    /// Returns the preview embedded in the file, or with `isQuick` a quick decode; nil if there is none.
    func degraded(_ plan: RenditionPlan, isQuick: Bool) async throws(RPCError) -> EncodedRendition? {
        let file = try resources.open(plan.digest)
        let job = WorkerJob(
            method: isQuick ? ThumbnailWorker.quickMethod : ThumbnailWorker.previewMethod,
            params: plan.json,
            files: [file.descriptor]
        )
        let result = try await run(
            job,
            over: plan.digest,
            on: quickWorkers,
            priority: isQuick ? .normal : .high
        )
        guard withExtendedLifetime(file, { !result.attachments.isEmpty }) else { return nil }
        return try Self.rendition(result.result, result.attachments.first)
    }

    func inspect(_ digest: String) async throws(RPCError) -> ImageFileInfo {
        let file = try resources.open(digest)
        let job = WorkerJob(method: ThumbnailWorker.inspectMethod, files: [file.descriptor])
        let result = try await run(job, over: digest, on: quickWorkers)
        guard let info = withExtendedLifetime(file, { try? ImageFileInfo(json: result.result) }) else {
            throw .invalidResult("does not describe the image")
        }
        return info
    }

    /// Describes a video. The index is that of ``FastStart``; nil if it does not have to be moved.
    func describe(video: AssetResource) async throws(RPCError) -> (description: VideoDescription, index: Bytes?) {
        let file = try resources.open(video.digest)
        let job = WorkerJob(
            method: VideoWorker.describeMethod,
            params: .object(video.partOfFile),
            files: [file.descriptor]
        )
        let result = try await run(job, over: video.digest, on: quickWorkers)
        guard let description = withExtendedLifetime(file, { try? VideoDescription(json: result.result) }) else {
            throw .invalidResult("does not describe the video")
        }
        return (description, result.attachments.first)
    }

    /// Describes the tracks of a video.
    func structure(of video: AssetResource) async throws(RPCError) -> VideoStructure {
        let file = try resources.open(video.digest)
        let job = WorkerJob(
            method: VideoWorker.structureMethod,
            params: .object(video.partOfFile),
            files: [file.descriptor]
        )
        let result = try await run(job, over: video.digest, on: quickWorkers)
        guard let structure = withExtendedLifetime(file, { try? VideoStructure(json: result.result) }) else {
            throw .invalidResult("does not describe the video")
        }
        return structure
    }

    func sheet(_ plan: ContactSheetPlan, _ bytes: Bytes) async throws(RPCError) -> EncodedRendition {
        let job = WorkerJob(method: ThumbnailWorker.sheetMethod, params: plan.json, attachments: [bytes])
        let result: WorkerResult
        do throws(WorkerFailure) { result = try await workers.run(job) } catch { throw error.rpcError }
        return try Self.rendition(result.result, result.attachments.first)
    }

    func metrics() -> JSONObject {
        var metrics = workers.metrics()
        let quick = quickWorkers.metrics()
        metrics["quick"] = .object(quick)
        // The process ids of both pools belong to the service.
        metrics["pids"] = .array((metrics["pids"]?.arrayValue ?? []) + (quick["pids"]?.arrayValue ?? []))
        return metrics
    }

    private func run(
        _ job: WorkerJob,
        over digest: String,
        on workers: WorkerPool,
        priority: WorkerPriority = .normal
    ) async throws(RPCError) -> WorkerResult {
        do throws(WorkerFailure) {
            let runner = ResourceJobRunner(workers, resources: resources, report: report)
            return try await runner.run(job, over: digest, priority: priority)
        } catch {
            throw error.rpcError
        }
    }

    /// Returns the outcomes in a worker's result, which has an object for each image, and the bytes of the rendered
    /// ones. The outcome is nil for an image that the worker did not begin.
    private static func outcomes(
        _ result: WorkerResult,
        count: Int
    ) throws(RPCError) -> [Result<EncodedRendition, RPCError>?] {
        let entries = result.result["images"]?.arrayValue ?? []
        guard entries.count == count else {
            throw .invalidResult("has \(entries.count) images instead of \(count)")
        }
        var attachments = result.attachments.makeIterator()
        var outcomes: [Result<EncodedRendition, RPCError>?] = []
        for entry in entries {
            if entry["error"]?["name"]?.stringValue == VideoWorker.deferredName {
                outcomes.append(.none)
            } else if let name = entry["error"]?["name"]?.stringValue {
                let message = entry["error"]?["message"]?.stringValue ?? ""
                outcomes.append(.failure(WorkerFailure.refused(name: name, message: message).rpcError))
            } else {
                outcomes.append(.success(try rendition(entry, attachments.next())))
            }
        }
        return outcomes
    }

    private static func rendition(_ json: JSON, _ bytes: Bytes?) throws(RPCError) -> EncodedRendition {
        guard var rendition = try? EncodedRendition(json: json), let bytes else {
            throw .invalidResult("is not an image")
        }
        rendition.bytes = bytes
        return rendition
    }
}

/// A finished rendition: its bytes and the properties that the response reports.
struct EncodedRendition: Sendable, Equatable {
    var bytes: Bytes
    var mimeType: String
    var pixelWidth: Int
    var pixelHeight: Int
    var isUpscaled: Bool
    /// The time of the frame in microseconds; nil for a photo.
    var frameTime: Int64?
    /// The headroom for which it was rendered in high dynamic range, above 1; nil for standard range.
    var headroom: Double?

    /// The approximate size in memory, in bytes.
    var cost: Int64 { Int64(bytes.count) + 256 }
}

extension EncodedRendition: JSONTabled {
    /// The properties without the bytes, for the header of a cache file and the result of a worker.
    static let table = JSONTable(
        "EncodedRendition",
        "A finished rendition.",
        unknown: .ignored,
        blank: EncodedRendition(bytes: [], mimeType: "", pixelWidth: 0, pixelHeight: 0, isUpscaled: false),
        [
            .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
            .required("pixelWidth", \.pixelWidth, .count(1...1_000_000), "Width of the image."),
            .required("pixelHeight", \.pixelHeight, .count(1...1_000_000), "Height of the image."),
            .required("isUpscaled", \.isUpscaled, .flag, "Larger than the source."),
            .optional("frameTime", \.frameTime, .integer(0...Int64.max), "Time of a video's frame."),
            .optional("headroom", \.headroom, .number(1...65_536), "For high dynamic range."),
        ]
    )
}

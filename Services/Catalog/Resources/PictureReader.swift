import Contracts
import Hosting
import JSONValue
import Messaging
import Metadata
import PhotoModel
import Storage

/// Reads what pictures say about themselves, in worker processes.
struct PictureReader: Sendable {
    static let method = "facts"
    /// The largest picture, in bytes; a worker reads it whole.
    static let maxBytes = 512 << 20

    let work: ResourceWork
    let quarantine: Quarantine
    let resources: ResourceStore

    /// The facts of stored bytes.
    ///
    /// - Parameter name: the file as the client knows it, for errors
    /// - Throws: `invalid_resource` where they are no picture, `worker_crashed` and `worker_timeout` where they do harm,
    ///   `quarantined` where they did so before
    func facts(of digest: ResourceDigest, name: String) async throws -> PictureFacts {
        if let entry = quarantine.entry(digest.text) {
            var refusal = entry.refusal(of: name)
            refusal.data["file"] = .string(name)
            throw refusal
        }
        let file = try resources.open(digest)
        do throws(WorkerFailure) {
            let job = WorkerJob(method: Self.method, files: [file.descriptor])
            let result = try await work.run(job, over: digest.text)
            guard let facts = try? PhotoFacts(json: result.result) else {
                throw .refused(name: "internal_error", message: "the worker's answer was not understood")
            }
            return PictureFacts(facts)
        } catch {
            throw Self.refusal(error, name)
        }
    }

    private static func refusal(_ failure: WorkerFailure, _ name: String) -> RPCError {
        let data: JSONObject = ["file": .string(name), "reason": .string(failure.message)]
        return switch failure {
        case .crashed, .exited: Refusal.workerCrashed.error("\(name): \(failure.message)", data)
        case .timedOut: Refusal.workerTimeout.error("\(name): \(failure.message)", data)
        case .queueFull: Refusal.busy.error(failure.message)
        case .unavailable: Refusal.unavailable.error(failure.message)
        case .cancelled: Refusal.userCancelled.error("the request was cancelled")
        case .refused, .resultTooLarge, .malformedResult:
            Refusal.invalidResource.error("\(name) cannot be taken in: \(failure.message)", data)
        }
    }

    /// The worker's side: blocks while it reads.
    static func handle(_ job: WorkerJob) throws(WorkerRefusal) -> WorkerResult {
        guard job.method == method else {
            throw WorkerRefusal(name: "invalid_request", message: "this worker knows only \(method)")
        }
        let bytes = try job.contents(ofFile: 0, limit: maxBytes)
        do throws(MetadataError) {
            try MetadataReader.requireWhole(bytes)
            return WorkerResult(result: try MetadataReader.facts(of: bytes).json)
        } catch {
            throw WorkerRefusal(name: error.name, message: error.message)
        }
    }
}

extension PictureFacts {
    /// Facts as they are stored: text in normal form C, bounded, and without what cannot be true.
    init(_ facts: PhotoFacts) {
        self.init()
        contentType = Self.text(facts.contentType, 128) ?? ""
        pixelWidth = facts.pixelWidth
        pixelHeight = facts.pixelHeight
        // HEIF files are turned by their own transformations; the number there only tells.
        let turnsItself = ["public.heic", "public.heif", "public.avif"].contains(facts.contentType)
        orientation = turnsItself ? 1 : facts.orientation
        mediaSubtypes = MediaSubtypes(rawValue: facts.mediaSubtypes & MediaSubtypes.names.reduce(0) { $0 | $1.bit })
        playbackStyle = facts.isAnimated ? .imageAnimated : .image
        creationDate = facts.captureDate.flatMap { AssetPatch.dates.contains($0) ? $0 : nil }
        creationOffset = creationDate == nil ? nil : facts.captureOffset
        location = facts.location.map { place in
            Location(
                latitude: place.latitude,
                longitude: place.longitude,
                altitude: place.altitude.flatMap { (-20_000...100_000).contains($0) ? $0 : nil }
            )
        }
        rating = facts.rating
        caption = Self.text(facts.caption, 65_536)
        keywords = facts.keywords.prefix(1024).compactMap { Self.text($0, 1024) }
        cameraMake = Self.text(facts.cameraMake, 1024)
        cameraModel = Self.text(facts.cameraModel, 1024)
        lensModel = Self.text(facts.lensModel, 1024)
    }

    /// Without zero characters, cut at a character; nil where nothing is left.
    static func text(_ text: String?, _ maxBytes: Int) -> String? {
        guard let text else { return nil }
        var result = ""
        var bytes = 0
        for character in nfc(String(text.unicodeScalars.filter { $0.value != 0 })) {
            bytes += character.utf8.count
            guard bytes <= maxBytes else { break }
            result.append(character)
        }
        return result.isEmpty ? nil : result
    }
}

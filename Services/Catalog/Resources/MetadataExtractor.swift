import Basics
import Glibc
import Hosting
import ImageFormats
import JSONValue
import Metadata
import PhotoModel
import Storage
import Video

/// Extracts the metadata of stored files, in worker processes.
struct MetadataExtractor: Sendable {
    static let method = "facts"
    /// The maximum size of an image in bytes; a worker reads it into memory.
    static let maxBytes = 512 << 20

    let work: ResourceJobRunner
    let quarantine: Quarantine
    let resources: ResourceStore
    /// True if the workers have the lowest priority of the system.
    var isBackground = false

    /// Returns the metadata of stored bytes.
    ///
    /// - Parameters:
    ///   - name: the client's name of the file, for errors
    ///   - type: the role of the bytes in the asset: a raw file is accepted beside an image
    ///   - isBurstFrame: true if the asset will be a frame of a burst, whatever its file says
    /// - Throws: `invalid_resource` if the bytes are not a supported image or video, `worker_crashed` or
    ///   `worker_timeout` if they crash or hang a worker, `quarantined` if they did so before
    func facts(
        of digest: ResourceDigest,
        name: String,
        type: ResourceType = .photo,
        isBurstFrame: Bool = false
    ) async throws -> ExtractedMetadata {
        try check(digest, name)
        let file = try resources.open(digest)
        do throws(WorkerFailure) {
            var params: JSONObject = [:]
            if isBurstFrame { params["isBurstFrame"] = true }
            if type == .alternatePhoto { params["ending"] = .string(FileGrouping.parts(name).fileExtension) }
            if isBackground { params["isBackground"] = true }
            let job = WorkerJob(method: Self.method, params: .object(params), files: [file.descriptor])
            let result = try await work.run(job, over: digest.text)
            guard let facts = try? PhotoMetadata(json: result.result) else {
                throw .refused(name: "internal_error", message: "the worker's result could not be parsed")
            }
            return ExtractedMetadata(facts)
        } catch {
            throw ResourceError.notRead(error, file: name)
        }
    }

    // MARK: Groups

    static let groupMethod = "group"
    /// The maximum number of files that one job reads: a job has at most as many descriptors.
    static let maxGroupFiles = 16
    /// The time limit of a job that reads a group, in seconds. After it, the files are read one by one in the remaining
    /// time of the request.
    private static let groupSeconds = 3

    /// A stored file of a group.
    struct File: Sendable {
        let digest: ResourceDigest
        let name: String
        let isBurstFrame: Bool
    }

    /// The error of a file of a group.
    struct GroupFailure: Error {
        let index: Int
        let cause: any Error
    }

    /// Returns the metadata of at most ``maxGroupFiles`` stored files in their order, like
    /// ``facts(of:name:type:isBurstFrame:)``.
    ///
    /// One job reads all of them. If its worker crashes or hangs, each file is read by a job of its own, which finds
    /// the file that is the cause.
    func facts(of files: [File]) async throws(GroupFailure) -> [ExtractedMetadata] {
        guard files.count > 1 else { return try await factsOneByOne(files) }
        var open: [ResourceFile] = []
        for (index, file) in files.enumerated() {
            do {
                try check(file.digest, file.name)
                open.append(try resources.open(file.digest))
            } catch {
                throw GroupFailure(index: index, cause: error)
            }
        }
        let params = files.map { file -> JSON in file.isBurstFrame ? ["isBurstFrame": true] : [:] }
        let job = WorkerJob(
            method: Self.groupMethod,
            params: ["files": .array(params)],
            files: open.map(\.descriptor)
        )
        let results: [JSON]
        do throws(WorkerFailure) {
            results = try await work.runOnce(job, wallSeconds: Self.groupSeconds).result["files"]?.arrayValue ?? []
        } catch .cancelled {
            throw GroupFailure(index: 0, cause: ResourceError.notRead(.cancelled, file: files[0].name))
        } catch {
            return try await factsOneByOne(files)
        }
        withExtendedLifetime(open) {}
        guard results.count == files.count else { return try await factsOneByOne(files) }
        var facts: [ExtractedMetadata] = []
        for (index, result) in results.enumerated() {
            if let json = result["facts"], let file = try? PhotoMetadata(json: json) {
                facts.append(ExtractedMetadata(file))
                continue
            }
            let failure = WorkerFailure.refused(
                name: result["error"]?["name"]?.stringValue ?? "internal_error",
                message: result["error"]?["message"]?.stringValue ?? "the worker's result could not be parsed"
            )
            throw GroupFailure(index: index, cause: ResourceError.notRead(failure, file: files[index].name))
        }
        return facts
    }

    private func factsOneByOne(_ files: [File]) async throws(GroupFailure) -> [ExtractedMetadata] {
        var all: [ExtractedMetadata] = []
        for (index, file) in files.enumerated() {
            do {
                all.append(try await facts(of: file.digest, name: file.name, isBurstFrame: file.isBurstFrame))
            } catch {
                throw GroupFailure(index: index, cause: error)
            }
        }
        return all
    }

    /// Handles a job with several files in the worker process. The result of a file may be an error.
    private static func handleGroup(_ job: WorkerJob) -> WorkerResult {
        let params = job.params["files"]?.arrayValue ?? []
        let results = zip(job.files, params).map { file, params -> JSON in
            do throws(WorkerJobError) {
                return ["facts": try handle(WorkerJob(method: method, params: params, files: [file])).result]
            } catch {
                return ["error": ["name": .string(error.name), "message": .string(error.message)]]
            }
        }
        return WorkerResult(result: ["files": .array(results)])
    }

    private func check(_ digest: ResourceDigest, _ name: String) throws {
        guard let entry = quarantine.entry(digest.text) else { return }
        throw ResourceError.quarantined(entry, file: name)
    }

    /// Handles a job in the worker process; blocks while it reads.
    static func handle(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        if job.method == sidecarMethod { return try handleSidecar(job) }
        if job.method == damageMethod { return try handleDamage(job) }
        if job.method == groupMethod { return handleGroup(job) }
        guard job.method == method else {
            throw WorkerJobError(name: "invalid_request", message: "this worker has no method \(job.method)")
        }
        if job.params["isBackground"]?.boolValue == true { nice(19) }
        // A video may be larger than memory: only its container is read.
        if let video = try readVideo(job) { return WorkerResult(result: video.json) }
        let bytes = try job.contents(ofFile: 0, limit: maxBytes)
        if let fileExtension = job.params["ending"]?.stringValue,
            let raw = MetadataReader.raw(bytes, fileExtension: fileExtension)
        {
            return WorkerResult(result: raw.json)
        }
        do throws(MetadataError) {
            let header = try MetadataReader.requireWhole(bytes)
            var facts = MetadataReader.facts(of: bytes, header)
            if facts.burstIdentifier != nil || job.params["isBurstFrame"] == true {
                facts.sharpness = MetadataReader.sharpness(of: bytes)
            }
            facts.imageDigest = imageDigest(of: bytes, header)
            return WorkerResult(result: facts.json)
        } catch {
            throw WorkerJobError(name: error.name, message: error.message)
        }
    }

    /// Returns the SHA-256 of the size and the image data of a file; nil if they cannot be separated from its metadata.
    private static func imageDigest(of bytes: [UInt8], _ header: ImageHeader) -> [UInt8]? {
        guard let format = ImageFormat.sniff(bytes), let ranges = ImageData.ranges(of: bytes, format) else {
            return nil
        }
        var hash = SHA256()
        hash.update(data: "\(format.rawValue) \(header.storedWidth) \(header.storedHeight)\n".utf8)
        for range in ranges { hash.update(data: bytes[range]) }
        return hash.finalize().bytes
    }

    private static func readVideo(_ job: WorkerJob) throws(WorkerJobError) -> PhotoMetadata? {
        guard let file = job.files.first else {
            throw WorkerJobError(name: "invalid_request", message: "the job has no file")
        }
        let size = max(0, Int(lseek(file, 0, SEEK_END)))
        WorkerProcess.enter(.reading)
        func read(_ offset: Int, _ count: Int) -> [UInt8] {
            [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
                used = max(0, pread(file, buffer.baseAddress, count, off_t(offset)))
            }
        }
        do {
            guard let type = VideoFileType.sniff(read(0, VideoFileType.sniffedBytes)) else { return nil }
            // This project's reader reads more metadata of these containers, FFmpeg reads all others.
            guard type.structure == .isoMedia else {
                guard type.isWhole(size: size, read: read) else { throw MetadataError.truncated }
                let video = try VideoFile(descriptor: file, range: 0..<Int64(size), isThorough: true)
                return MetadataReader.video(video.info.header)
            }
            return try MetadataReader.video(size: size, read: read)
        } catch let error as VideoError {
            throw WorkerJobError(name: error.name, message: error.message)
        } catch let error as MetadataError {
            throw WorkerJobError(name: error.name, message: error.message)
        } catch {
            throw WorkerJobError(name: "invalid_resource", message: "\(error)")
        }
    }

    // MARK: Damage

    static let damageMethod = "damage"

    /// Returns a description of the damage of a stored image, or nil if none is known.
    func damage(of digest: ResourceDigest) async throws -> String? {
        try check(digest, digest.text)
        let file = try resources.open(digest)
        let result = try await work.run(
            WorkerJob(method: Self.damageMethod, files: [file.descriptor]),
            over: digest.text
        )
        return ExtractedMetadata.text(result.result["damage"]?.stringValue, AssetResource.maxDamageBytes)
    }

    /// Checks for damage in the worker process, at the lowest scheduling priority.
    private static func handleDamage(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        nice(19)
        let bytes = try job.contents(ofFile: 0, limit: maxBytes)
        return WorkerResult(result: ["damage": MetadataReader.damage(of: bytes).map(JSON.string) ?? .null])
    }

    // MARK: Sidecars

    static let sidecarMethod = "sidecar"

    /// Returns the metadata in an XMP sidecar.
    ///
    /// - Parameters:
    ///   - name: the client's name of the file, for errors
    ///   - image: the metadata of the image beside it
    /// - Throws: `invalid_resource` with `sidecar` true in its data if it cannot be read, `quarantined` if it crashed
    ///   or hung workers before
    func sidecar(_ bytes: Bytes, name: String, beside image: ExtractedMetadata?) async throws -> SidecarMetadata {
        let digest = ResourceDigest(of: bytes)
        try check(digest, name)
        do throws(WorkerFailure) {
            var params: JSONObject = [:]
            if let image {
                params["pixelWidth"] = JSON(image.pixelWidth)
                params["pixelHeight"] = JSON(image.pixelHeight)
                params["orientation"] = JSON(image.orientation)
            }
            let job = WorkerJob(method: Self.sidecarMethod, params: .object(params), attachments: [bytes])
            let result = try await work.run(job, over: digest.text)
            guard let facts = try? SidecarMetadata(json: result.result) else {
                throw .refused(name: "internal_error", message: "the worker's result could not be parsed")
            }
            return facts
        } catch {
            throw ResourceError.notRead(error, file: name, isSidecar: true)
        }
    }

    private static func handleSidecar(_ job: WorkerJob) throws(WorkerJobError) -> WorkerResult {
        WorkerProcess.enter(.reading)
        var image: SidecarMetadata.Image?
        if let width = job.params["pixelWidth"]?.intValue, let height = job.params["pixelHeight"]?.intValue,
            let orientation = job.params["orientation"]?.intValue
        {
            image = .init(pixelWidth: Int(width), pixelHeight: Int(height), orientation: Int(orientation))
        }
        do throws(MetadataError) {
            return WorkerResult(result: try SidecarMetadata(xmp: job.attachments.first ?? [], beside: image).json)
        } catch {
            throw WorkerJobError(name: error.name, message: error.message)
        }
    }
}

extension ExtractedMetadata {
    /// Creates metadata as it is stored: texts in normal form C and limited in length, without impossible values.
    init(_ facts: PhotoMetadata) {
        self.init()
        contentType = Self.text(facts.contentType, 128) ?? ""
        pixelWidth = facts.pixelWidth
        pixelHeight = facts.pixelHeight
        damage = Self.text(facts.damage, AssetResource.maxDamageBytes)
        orientation = facts.isOrientedByDecoder ? 1 : facts.orientation
        mediaSubtypes = MediaSubtypes(rawValue: facts.mediaSubtypes & MediaSubtypes.names.reduce(0) { $0 | $1.bit })
        playbackStyle = facts.isVideo ? .video : facts.isAnimated ? .imageAnimated : .image
        mediaType = facts.isVideo ? .video : .image
        duration = facts.duration
        contentIdentifier = facts.contentIdentifier
        imageDigest = facts.isVideo ? nil : facts.imageDigest
        embeddedVideo = facts.embeddedVideo.map { video in
            MotionPhotoVideo(
                offset: video.offset,
                size: video.size,
                contentType: Self.text(video.contentType, 128) ?? "",
                pixelWidth: video.pixelWidth,
                pixelHeight: video.pixelHeight,
                duration: video.duration
            )
        }
        burstIdentifier = facts.isVideo ? nil : Self.text(facts.burstIdentifier, 128)
        sharpness = facts.isVideo ? nil : facts.sharpness
        creationDate = facts.captureDate.flatMap { AssetPatch.dates.contains($0) ? $0 : nil }
        creationOffset = creationDate == nil ? nil : facts.captureOffset
        isModificationDate = creationDate != nil && facts.captureDateSource?.isModification == true
        isOffsetDerived = creationOffset != nil && facts.isOffsetDerived
        isInstant = facts.isCaptureTimeUTC
        location = facts.location.map(Self.location)
        rating = facts.rating
        caption = Self.text(facts.caption, 65_536)
        keywords = facts.keywords.prefix(1024).compactMap { Self.text($0, 1024) }
        cameraMake = Self.text(facts.cameraMake, 1024)
        cameraModel = Self.text(facts.cameraModel, 1024)
        lensModel = Self.text(facts.lensModel, 1024)
        metadata = facts.metadata?.stored
    }

    /// Returns the text without NUL characters, cut at a character boundary; nil if nothing is left.
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

extension AssetMetadata {
    /// The metadata as it is stored: texts in normal form C and limited in length.
    var stored: AssetMetadata {
        func text(_ text: String?) -> String? { ExtractedMetadata.text(text, Self.maxTextBytes) }
        var result = self
        for path in [
            \Self.title, \.headline, \.copyright, \.creator, \.credit, \.city, \.state, \.country, \.label, \.software,
        ] {
            result[keyPath: path] = text(self[keyPath: path])
        }
        result.hierarchicalKeywords = hierarchicalKeywords.compactMap(text)
        result.persons = persons.compactMap { person in text(person.name).map { Person(name: $0, area: person.area) } }
        return result
    }
}

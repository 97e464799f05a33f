import ArgumentParser
import Basics
import Contracts
import Hosting
import ImageFormats
import JSONValue
import PhotoClient
import PhotoModel
import SystemPackage

/// Exports assets, one after another.
struct ExportRun {
    private let command: ExportCommand
    private let library: PhotoLibrary
    private let output: Output
    private let restartTime: Duration
    private let sync: FileSync
    private var folder: ExportFolder
    private var batch: ExportBatch
    private var progress: ProgressReporter

    /// Creates the folder if needed.
    init(
        _ command: ExportCommand,
        _ library: PhotoLibrary,
        _ output: Output,
        _ restartTime: Duration,
        _ sync: FileSync
    ) throws {
        (self.command, self.library, self.output) = (command, library, output)
        (self.restartTime, self.sync) = (restartTime, sync)
        folder = try ExportFolder(command.output)
        batch = ExportBatch(of: command.output, sync: sync)
        progress = ProgressReporter(output: output)
    }

    /// The error of a service that does not answer any more: the other assets cannot be exported either.
    private struct Silence: Error {
        let error: RPCError

        init(of service: ServiceName, _ error: RPCError) {
            var error = error
            error.message = "the \(service.rawValue) does not respond: \(error.message)"
            self.error = error
        }
    }

    /// The members of each asset that are needed: a sidecar has nearly all of them.
    private var members: [String]? { command.sidecar ? nil : AssetMembers.export }

    /// Exports the assets of a fetch.
    mutating func export(_ fetch: FetchDescription) async throws {
        do {
            var pages = AssetPages(fetch, in: library, members: members)
            var page = try await pages.next()
            progress.begin(total: page?.count ?? 0)
            while let assets = page?.assets {
                for asset in assets { try await export(asset) }
                page = try await pages.next()
            }
        } catch {
            throw stopped(by: error)
        }
        try finish()
    }

    /// Exports the assets with these identifiers, also those in the trash.
    mutating func export(_ ids: [ObjectID]) async throws {
        progress.begin(total: ids.count)
        do {
            var named = NamedAssets(ids, in: library, members: members)
            while let entry = try await named.next() {
                if let asset = entry.asset {
                    try await export(asset)
                } else {
                    progress.report(CommandFailure(NamedAssets.noAsset(entry.id)))
                    progress.step(isDone: false)
                }
            }
        } catch {
            throw stopped(by: error)
        }
        try finish()
    }

    /// - Throws: the exit status for a partial success if some assets could not be exported, or that for a failure if
    ///   none could
    private mutating func finish() throws {
        batch.flush(&progress)
        progress.clear()
        try progress.requireWritten()
        if progress.failed > 0 {
            output.note("\(QuantityFormatter.count(progress.failed, "asset")) could not be exported")
            let hasSucceeded = progress.done > progress.failed
            throw ExitCode((hasSucceeded ? CommandFailure.Status.partly : .refused).rawValue)
        }
    }

    /// Keeps the files that are complete, and returns the error that names how far the export got.
    private mutating func stopped(by error: any Error) -> CommandFailure {
        batch.flush(&progress)
        progress.clear()
        let cause: any Error = (error as? Silence)?.error ?? error
        return CommandFailure(cause, after: progress.done - progress.failed, of: progress.total)
    }

    // MARK: One asset

    /// Exports one asset. If that fails, also because a file cannot be written, the export continues with the next one.
    ///
    /// - Throws: ``Silence``
    private mutating func export(_ asset: Asset) async throws {
        for service in command.services where !service.client(of: library).isConnected {
            if let error = await silence(of: service) { throw Silence(of: service, error) }
        }
        var item = ExportBatch.Item()
        defer { batch.append(item, &progress) }
        do {
            if var request = try command.images.request(asset) {
                request.isNetworkAccessAllowed = command.downloads.download
                try await exportImage(asset, request, to: &item)
            } else {
                try await exportFiles(asset, to: &item)
            }
        } catch {
            item.isComplete = false
            try await report(error, of: asset)
        }
    }

    /// Waits for a service that may be restarting, and returns the error of one that does not answer.
    private func silence(of service: ServiceName) async -> RPCError? {
        await service.client(of: library).silence(within: restartTime)
    }

    /// Reports an error that concerns one asset.
    ///
    /// - Throws: ``Silence``
    private mutating func report(_ error: any Error, of asset: Asset) async throws {
        switch error {
        case let silence as Silence: throw silence
        case let error as RPCError:
            if error.isSilence {
                for service in command.services {
                    if await silence(of: service) != nil { throw Silence(of: service, error) }
                }
            }
            progress.report(CommandFailure(error, of: asset.id))
        default: progress.report(CommandFailure(error))
        }
    }

    private mutating func exportImage(
        _ asset: Asset,
        _ request: ImageRequest,
        to item: inout ExportBatch.Item
    ) async throws {
        let (result, bytes) = try await image(request)
        let ending = request.format.fileExtension
        let stem = FilePath.Component(ExportFolder.safe(asset.originalFilename ?? "file"))?.stem ?? "file"
        let name = "\(stem).\(ending)"
        var files = [
            ExportFolder.File(name: name, digest: SHA256.hash(data: bytes).hexadecimal, size: Int64(bytes.count))
        ]
        let sidecar = try await sidecar(of: asset)
        if let sidecar { files.append(.init(name: name, sidecar: sidecar)) }
        let places = try folder.places(of: files)
        let place = places[0]
        let json: JSON = [
            "asset": .string(asset.id.text), "file": .string(place.path), "size": JSON(bytes.count),
            "pixelWidth": JSON(result.pixelWidth), "pixelHeight": JSON(result.pixelHeight),
            "isPresent": .bool(place.isPresent),
        ]
        let line =
            "\(place.path.printable)  \(result.pixelWidth) x \(result.pixelHeight)"
            + (place.isPresent ? ", already there" : "")
        item.files.append(.init(writer: try write(bytes, to: place), result: (json: json, line: line)))
        if let sidecar { item.files.append(.init(writer: try write(sidecar, to: places[1]))) }
    }

    /// How often an image is requested whose thumbnailer ended meanwhile. It may be the image that ends it.
    private static let imageAttempts = 3

    /// Requests an image, again if the thumbnailer is restarted meanwhile: nothing is lost with the connection.
    ///
    /// - Throws: ``Silence`` if the thumbnailer does not come back
    private func image(_ request: ImageRequest) async throws -> (result: ImageRequest.Result, bytes: Bytes) {
        var attempts = 1
        while true {
            do throws(RPCError) {
                return try await library.image(request, deadline: command.downloads.deadline(.seconds(120)))
            } catch {
                guard error.errorCode == .connectionLost, attempts < Self.imageAttempts else { throw error }
                if await silence(of: .thumbnailer) != nil { throw Silence(of: .thumbnailer, error) }
                attempts += 1
            }
        }
    }

    private mutating func exportFiles(_ asset: Asset, to item: inout ExportBatch.Item) async throws {
        let current = command.current
        guard let resource = current ? asset.currentResource : asset.originalResource else {
            throw CommandFailure(message: "\(asset.id) has no such file", name: ErrorCode.missingResource.rawValue)
        }
        var resources = [resource]
        if !current, let alternate = asset.resource(.alternatePhoto) { resources.append(alternate) }
        // A video that is a part of the photo's file is in it already.
        if let video = current ? asset.currentVideo : asset.resource(.pairedVideo), video.offset == nil {
            resources.append(video)
        }
        var names: Set<String> = []
        var files = resources.map { resource in
            var name = Self.fileName(of: resource, asset)
            // Programs may have given all files of an asset the same name.
            let isNew = names.insert(ExportFolder.safe(name).lowercased()).inserted
            if !isNew { name = "\(resource.type.rawValue) \(name)" }
            return ExportFolder.File(name: name, digest: resource.digest, size: resource.size)
        }
        let sidecar = try await sidecar(of: asset)
        if let sidecar { files.append(.init(name: files[0].name, sidecar: sidecar)) }
        let places = try folder.places(of: files)
        for (resource, place) in zip(resources, places) {
            do {
                item.files.append(try await write(resource, of: asset, to: place))
            } catch let error as RPCError {
                // The other files of the asset are exported nevertheless.
                item.isComplete = false
                try await report(error, of: asset)
            }
        }
        if let sidecar { item.files.append(.init(writer: try write(sidecar, to: places[resources.count]))) }
    }

    // MARK: One file

    /// Writes a file of an asset.
    ///
    /// - Throws: ``RPCError`` if its bytes are not available
    private func write(
        _ resource: AssetResource,
        of asset: Asset,
        to place: ExportFolder.Place
    ) async throws -> ExportBatch.File {
        let json: JSON = [
            "asset": .string(asset.id.text), "file": .string(place.path), "size": .int(resource.size),
            "digest": .string(resource.digest), "isPresent": .bool(place.isPresent),
        ]
        let line =
            "\(place.path.printable)  \(QuantityFormatter.bytes(resource.size))"
            + (place.isPresent ? ", already there" : "")
        guard !place.isPresent else { return ExportBatch.File(result: (json: json, line: line)) }
        let writer = try OutputFileWriter(place.path, replaces: false, sync: sync)
        do {
            let bytes = library.resource(
                asset: asset.id,
                type: resource.type,
                isNetworkAccessAllowed: command.downloads.download,
                connectionDeadline: restartTime
            )
            for try await chunk in bytes { try writer.write(chunk) }
        } catch let error as RPCError {
            writer.abandon()
            throw error
        }
        try writer.close(isSynced: batch.syncsEachFile)
        return ExportBatch.File(writer: writer, result: (json: json, line: line))
    }

    /// Writes a file that is in memory. Returns nil if it is there already.
    private func write(_ bytes: [UInt8], to place: ExportFolder.Place) throws -> OutputFileWriter? {
        guard !place.isPresent else { return nil }
        let writer = try OutputFileWriter(place.path, replaces: place.replaces, sync: sync)
        try writer.write(bytes)
        try writer.close(isSynced: batch.syncsEachFile)
        return writer
    }

    /// Returns the sidecar of an asset, or nil if none is wanted.
    private func sidecar(of asset: Asset) async throws -> [UInt8]? {
        guard command.sidecar else { return nil }
        let isCurrent = command.images.size == nil ? command.current : !command.images.original
        let isRender = isCurrent && asset.hasAdjustments
        return Array(try await XMPSidecar.text(of: asset, isRender: isRender, in: library).utf8)
    }

    /// Returns the original name of a file. A render has that of the asset, with its own ending.
    private static func fileName(of resource: AssetResource, _ asset: Asset) -> String {
        let name = resource.originalFilename ?? asset.originalFilename ?? "file"
        guard resource.originalFilename == nil, resource.type != asset.originalResource?.type else { return name }
        guard let ending = resource.fileEnding else { return name }
        let stem = FilePath.Component(ExportFolder.safe(name))?.stem ?? "file"
        return "\(stem).\(ending)"
    }
}

extension ExportFolder.File {
    /// A sidecar beside the file with this name.
    fileprivate init(name: String, sidecar: [UInt8]) {
        let digest = SHA256.hash(data: sidecar).hexadecimal
        self.init(name: name, suffix: ".xmp", digest: digest, size: Int64(sidecar.count), sidecar: sidecar)
    }
}

extension AssetResource {
    /// The usual ending of a file of this type, or nil for a type that no render has.
    fileprivate var fileEnding: String? {
        switch contentType {
        case "public.jpeg": "jpg"
        case "com.apple.quicktime-movie": "mov"
        case "public.mpeg-4": "mp4"
        default: ImageFormat.allCases.first { $0.contentType == contentType }?.rawValue
        }
    }
}

extension Asset {
    /// The video of a Live Photo as it is shown.
    fileprivate var currentVideo: AssetResource? { resource(.fullSizePairedVideo) ?? resource(.pairedVideo) }
}

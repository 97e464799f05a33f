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

    /// The error of a service that no longer responds: the other assets cannot be exported either.
    private struct ServiceUnresponsive: Error {
        let error: RPCError

        init(of service: ServiceName, _ error: RPCError) {
            var error = error
            error.message = "the \(service.rawValue) does not respond: \(error.message)"
            self.error = error
        }
    }

    /// The members of each asset that are needed; nil for all, because a sidecar has nearly all of them.
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
            throw finish(after: error)
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
            throw finish(after: error)
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

    /// Completes the files that were written, and returns the error with the number of exported assets.
    private mutating func finish(after error: any Error) -> CommandFailure {
        batch.flush(&progress)
        progress.clear()
        let cause: any Error = (error as? ServiceUnresponsive)?.error ?? error
        return CommandFailure(cause, after: progress.done - progress.failed, of: progress.total)
    }

    // MARK: One asset

    /// Exports one asset. If that fails, also because a file cannot be written, the export continues with the next one.
    ///
    /// - Throws: ``ServiceUnresponsive``
    private mutating func export(_ asset: Asset) async throws {
        for service in command.services where !service.client(of: library).isConnected {
            if let error = await errorIfUnresponsive(service) { throw ServiceUnresponsive(of: service, error) }
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

    /// Waits for a service that may be restarting. Returns the error if it does not respond; nil if it does.
    private func errorIfUnresponsive(_ service: ServiceName) async -> RPCError? {
        await service.client(of: library).errorIfUnresponsive(within: restartTime)
    }

    /// Reports an error that concerns one asset.
    ///
    /// - Throws: ``ServiceUnresponsive``
    private mutating func report(_ error: any Error, of asset: Asset) async throws {
        switch error {
        case let error as ServiceUnresponsive: throw error
        case let error as RPCError:
            if error.meansNoResponse {
                for service in command.services {
                    if await errorIfUnresponsive(service) != nil { throw ServiceUnresponsive(of: service, error) }
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
        let fileExtension = request.format.fileExtension
        let stem = FilePath.Component(ExportFolder.safe(asset.originalFilename ?? "file"))?.stem ?? "file"
        let name = "\(stem).\(fileExtension)"
        var files = [
            ExportFolder.File(name: name, digest: SHA256.hash(data: bytes).hexadecimal, size: Int64(bytes.count))
        ]
        let sidecar = try await sidecar(of: asset)
        if let sidecar { files.append(.init(name: name, sidecar: sidecar)) }
        let destinations = try folder.destinations(of: files)
        let destination = destinations[0]
        let json: JSON = [
            "asset": .string(asset.id.text), "file": .string(destination.path), "size": JSON(bytes.count),
            "pixelWidth": JSON(result.pixelWidth), "pixelHeight": JSON(result.pixelHeight),
            "isPresent": .bool(destination.isPresent),
        ]
        let line =
            "\(destination.path.printable)  \(result.pixelWidth) x \(result.pixelHeight)"
            + (destination.isPresent ? ", already there" : "")
        item.files.append(.init(writer: try write(bytes, to: destination), result: (json: json, line: line)))
        if let sidecar { item.files.append(.init(writer: try write(sidecar, to: destinations[1]))) }
    }

    /// The maximum number of requests for an image during which the thumbnailer ends: the image may be the cause.
    private static let imageAttempts = 3

    /// Requests an image, again if the thumbnailer is restarted meanwhile: nothing is lost with the connection.
    ///
    /// - Throws: ``ServiceUnresponsive`` if the thumbnailer does not come back
    private func image(_ request: ImageRequest) async throws -> (result: ImageRequest.Result, bytes: Bytes) {
        var attempts = 1
        while true {
            do throws(RPCError) {
                return try await library.image(request, deadline: command.downloads.deadline(.seconds(120)))
            } catch {
                guard error.errorCode == .connectionLost, attempts < Self.imageAttempts else { throw error }
                if await errorIfUnresponsive(.thumbnailer) != nil { throw ServiceUnresponsive(of: .thumbnailer, error) }
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
        // A video that is part of the photo's file needs no file of its own.
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
        let destinations = try folder.destinations(of: files)
        for (resource, destination) in zip(resources, destinations) {
            do {
                item.files.append(try await write(resource, of: asset, to: destination))
            } catch let error as RPCError {
                // The other files of the asset are exported nevertheless.
                item.isComplete = false
                try await report(error, of: asset)
            }
        }
        if let sidecar { item.files.append(.init(writer: try write(sidecar, to: destinations[resources.count]))) }
    }

    // MARK: One file

    /// Writes a file of an asset.
    ///
    /// - Throws: ``RPCError`` if its bytes are not available
    private func write(
        _ resource: AssetResource,
        of asset: Asset,
        to destination: ExportFolder.Destination
    ) async throws -> ExportBatch.File {
        let json: JSON = [
            "asset": .string(asset.id.text), "file": .string(destination.path), "size": .int(resource.size),
            "digest": .string(resource.digest), "isPresent": .bool(destination.isPresent),
        ]
        let line =
            "\(destination.path.printable)  \(QuantityFormatter.bytes(resource.size))"
            + (destination.isPresent ? ", already there" : "")
        guard !destination.isPresent else { return ExportBatch.File(result: (json: json, line: line)) }
        let writer = try OutputFileWriter(destination.path, replaces: false, sync: sync)
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

    /// Writes bytes to a file. Returns nil if the file exists already.
    private func write(_ bytes: [UInt8], to destination: ExportFolder.Destination) throws -> OutputFileWriter? {
        guard !destination.isPresent else { return nil }
        let writer = try OutputFileWriter(destination.path, replaces: destination.replaces, sync: sync)
        try writer.write(bytes)
        try writer.close(isSynced: batch.syncsEachFile)
        return writer
    }

    /// Returns the sidecar of an asset, or nil if none is requested.
    private func sidecar(of asset: Asset) async throws -> [UInt8]? {
        guard command.sidecar else { return nil }
        let isCurrent = command.images.size == nil ? command.current : !command.images.original
        let isRender = isCurrent && asset.hasAdjustments
        return Array(try await XMPSidecar.text(of: asset, isRender: isRender, in: library).utf8)
    }

    /// Returns the original name of a file. A render has the name of the asset with the extension of its own type.
    private static func fileName(of resource: AssetResource, _ asset: Asset) -> String {
        let name = resource.originalFilename ?? asset.originalFilename ?? "file"
        guard resource.originalFilename == nil, resource.type != asset.originalResource?.type else { return name }
        guard let fileExtension = resource.fileExtension else { return name }
        let stem = FilePath.Component(ExportFolder.safe(name))?.stem ?? "file"
        return "\(stem).\(fileExtension)"
    }
}

extension ExportFolder.File {
    /// Creates a sidecar for the file with this name.
    fileprivate init(name: String, sidecar: [UInt8]) {
        let digest = SHA256.hash(data: sidecar).hexadecimal
        self.init(name: name, suffix: ".xmp", digest: digest, size: Int64(sidecar.count), sidecar: sidecar)
    }
}

extension AssetResource {
    /// The extension of a file of this type, or nil for a type that no render has.
    fileprivate var fileExtension: String? {
        switch contentType {
        case "public.jpeg": "jpg"
        case "com.apple.quicktime-movie": "mov"
        case "public.mpeg-4": "mp4"
        default: ImageFormat.allCases.first { $0.contentType == contentType }?.rawValue
        }
    }
}

extension Asset {
    /// The current video of a Live Photo.
    fileprivate var currentVideo: AssetResource? { resource(.fullSizePairedVideo) ?? resource(.pairedVideo) }
}

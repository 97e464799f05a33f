import ArgumentParser
import Basics
import Contracts
import Hosting
import ImageFormats
import JSONValue
import PhotoClient
import PhotoModel
import SystemPackage

/// `safelight export`
struct ExportCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Save the files of assets to a folder, or images of them at a given size.",
        discussion: """
            Exports the named assets, or all assets of a fetch if none is named, with the raw files of photos and the \
            videos of Live Photos. Files are verified by their SHA-256, and have their original names; no file is \
            replaced: a second IMG_1.jpg becomes "IMG_1 (2).jpg", with its raw file, its video and its sidecar, and a \
            file that is there with the same content is not written again. \
            With --size, images are rendered instead: with edits, or without them with --original.
            """
    )

    @Argument(help: "Asset identifiers, or - to read them from standard input.", completion: Completions.assets)
    var ids: [String] = []

    @OptionGroup var fetch: FetchOptions

    @Option(name: .shortAndLong, help: "Output folder; created if needed.")
    var output: String

    @Flag(help: "Export the edited version instead of the original.")
    var current = false

    @Flag(help: "Also write an XMP sidecar for each file: metadata, adjustment data and edit history.")
    var sidecar = false

    @OptionGroup(title: "Images") var images: ExportImageOptions

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] {
        [.catalog] + (images.size == nil ? [] : [.thumbnailer]) + (sidecar ? [.editor] : [])
    }

    func validate() throws {
        guard ids.isEmpty || fetch.isEmpty else {
            throw ValidationError("give assets, or a fetch with --where, --album and the other options, not both")
        }
    }

    func check() throws {
        _ = try fetch.fetch(of: nil)
        if images.size != nil, current { throw ValidationError("--current cannot be combined with --size") }
        if let size = images.size { _ = try ThumbCommand.size(size) }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let signals = UnfinishedFiles.removeAtSignals()
        defer { withExtendedLifetime(signals) {} }
        var progress = ProgressReporter(output: output)
        if ids.isEmpty {
            let fetch = try await fetch.fetch(in: library)
            var folder = try ExportFolder(self.output)
            progress.begin(total: try await library.assets(fetch, count: 1).count)
            for try await asset in library.allAssets(fetch) {
                progress.step(isDone: try await export(asset, from: library, to: &folder, &progress))
            }
        } else {
            let ids = try await AssetArguments.read(ids, in: library)
            var folder = try ExportFolder(self.output)
            progress.begin(total: ids.count)
            for id in ids {
                progress.step(isDone: try await export(id, from: library, to: &folder, &progress))
            }
        }
        progress.clear()
        try progress.requireWritten()
        if progress.failed > 0 {
            output.note("\(QuantityFormatter.count(progress.failed, "asset")) could not be exported")
            throw ExitCode(CommandFailure.Status.partly.rawValue)
        }
    }

    /// Exports the asset with an identifier. Returns false if there is none; the export continues with the next asset.
    private func export(
        _ id: ObjectID,
        from library: PhotoLibrary,
        to folder: inout ExportFolder,
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        let asset: Asset
        do throws(RPCError) {
            asset = try await library.namedAsset(id).asset
        } catch {
            guard !error.isSilence else { throw error }
            progress.report(CommandFailure(error))
            return false
        }
        return try await export(asset, from: library, to: &folder, &progress)
    }

    /// Exports one asset. Returns false if that failed, also if a file cannot be written; the export continues with the
    /// next asset.
    private func export(
        _ asset: Asset,
        from library: PhotoLibrary,
        to folder: inout ExportFolder,
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        do {
            if var request = try images.request(asset) {
                request.isNetworkAccessAllowed = downloads.download
                try await exportImage(asset, request, from: library, to: &folder, &progress)
                return true
            }
            return try await exportFiles(asset, from: library, to: &folder, &progress)
        } catch let error as RPCError {
            progress.report(CommandFailure(error, of: asset.id))
        } catch let failure as CommandFailure {
            progress.report(failure)
        }
        return false
    }

    private func exportImage(
        _ asset: Asset,
        _ request: ImageRequest,
        from library: PhotoLibrary,
        to folder: inout ExportFolder,
        _ progress: inout ProgressReporter
    ) async throws {
        let (result, bytes) = try await library.image(request, deadline: downloads.deadline(.seconds(120)))
        let ending = request.format.fileExtension
        let stem = FilePath.Component(ExportFolder.safe(asset.originalFilename ?? "file"))?.stem ?? "file"
        let name = "\(stem).\(ending)"
        var files = [
            ExportFolder.File(name: name, digest: SHA256.hash(data: bytes).hexadecimal, size: Int64(bytes.count))
        ]
        let sidecar = try await sidecar(of: asset, in: library)
        if let sidecar { files.append(.init(name: name, sidecar: sidecar)) }
        let places = try folder.places(of: files)
        let place = places[0]
        if !place.isPresent { try OutputFile.write(bytes, to: place.path, replaces: false) }
        if let sidecar { try write(sidecar, to: places.last) }
        progress.write(
            [
                "asset": .string(asset.id.text), "file": .string(place.path), "size": JSON(bytes.count),
                "pixelWidth": JSON(result.pixelWidth), "pixelHeight": JSON(result.pixelHeight),
                "isPresent": .bool(place.isPresent),
            ],
            "\(place.path.printable)  \(result.pixelWidth) x \(result.pixelHeight)"
                + (place.isPresent ? ", already there" : "")
        )
    }

    /// Exports the files of one asset. Returns false if bytes are not available.
    private func exportFiles(
        _ asset: Asset,
        from library: PhotoLibrary,
        to folder: inout ExportFolder,
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        guard let resource = current ? asset.currentResource : asset.originalResource else {
            progress.report(
                CommandFailure(message: "\(asset.id) has no such file", name: ErrorCode.missingResource.rawValue)
            )
            return false
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
        let sidecar = try await sidecar(of: asset, in: library)
        if let sidecar { files.append(.init(name: files[0].name, sidecar: sidecar)) }
        let places = try folder.places(of: files)
        var isComplete = true
        for (resource, place) in zip(resources, places) {
            isComplete = try await write(resource, of: asset, from: library, to: place, &progress) && isComplete
        }
        if let sidecar { try write(sidecar, to: places.last) }
        return isComplete
    }

    private func write(
        _ resource: AssetResource,
        of asset: Asset,
        from library: PhotoLibrary,
        to place: ExportFolder.Place,
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        if !place.isPresent {
            let writer = try OutputFileWriter(place.path, replaces: false)
            do {
                let bytes = library.resource(
                    asset: asset.id,
                    type: resource.type,
                    isNetworkAccessAllowed: downloads.download
                )
                for try await chunk in bytes { try writer.write(chunk) }
            } catch let error as RPCError {
                writer.abandon()
                progress.report(CommandFailure(error, of: asset.id))
                return false
            }
            try writer.finish()
        }
        progress.write(
            [
                "asset": .string(asset.id.text), "file": .string(place.path), "size": .int(resource.size),
                "digest": .string(resource.digest), "isPresent": .bool(place.isPresent),
            ],
            "\(place.path.printable)  \(QuantityFormatter.bytes(resource.size))"
                + (place.isPresent ? ", already there" : "")
        )
        return true
    }

    /// Returns the sidecar of an asset, or nil if none is wanted.
    private func sidecar(of asset: Asset, in library: PhotoLibrary) async throws -> [UInt8]? {
        guard sidecar else { return nil }
        return Array(try await XMPSidecar.text(of: asset, in: library).utf8)
    }

    private func write(_ sidecar: [UInt8], to place: ExportFolder.Place?) throws {
        guard let place, !place.isPresent else { return }
        try OutputFile.write(sidecar, to: place.path, replaces: false)
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
        self.init(name: name, suffix: ".xmp", digest: digest, size: Int64(sidecar.count))
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

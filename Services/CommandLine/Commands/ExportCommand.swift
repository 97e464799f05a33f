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
            Exports the named assets, or all assets of a fetch if none is named, with the films of Live Photos. Files are \
            verified by their SHA-256, and have their original names; no file is replaced: a second IMG_1.jpg becomes \
            "IMG_1 (2).jpg", and a file that is there with the same content is not written again. \
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

    func check() throws {
        _ = try fetch.fetch(of: nil)
        if images.size != nil, current { throw ValidationError("--current cannot be combined with --size") }
        if let size = images.size { _ = try ThumbCommand.size(size) }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        var folder = try ExportFolder(self.output)
        var progress = ProgressReporter(output: output)
        if ids.isEmpty {
            let fetch = try await fetch.fetch(in: library)
            progress.begin(total: try await library.assets(fetch, count: 1).count)
            for try await asset in library.allAssets(fetch) {
                progress.step(isDone: try await export(asset, from: library, to: &folder, &progress))
            }
        } else {
            let ids = try await Identifiers.read(ids, in: library)
            progress.begin(total: ids.count)
            for id in ids {
                progress.step(
                    isDone: try await export(try await library.asset(id), from: library, to: &folder, &progress)
                )
            }
        }
        progress.clear()
        if progress.failed > 0 {
            output.note("\(QuantityFormatter.count(progress.failed, "asset")) could not be exported")
            throw ExitCode(CommandFailure.Status.partly.rawValue)
        }
    }

    /// Exports one asset. Returns false if that failed; the export continues with the next asset.
    private func export(
        _ asset: Asset,
        from library: PhotoLibrary,
        to folder: inout ExportFolder,
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        if var request = try images.request(asset) {
            request.isNetworkAccessAllowed = downloads.download
            return try await exportImage(asset, request, from: library, to: &folder, &progress)
        }
        return try await exportFiles(asset, from: library, to: &folder, &progress)
    }

    private func exportImage(
        _ asset: Asset,
        _ request: ImageRequest,
        from library: PhotoLibrary,
        to folder: inout ExportFolder,
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        do throws(RPCError) {
            let (result, bytes) = try await library.image(request, deadline: downloads.deadline(.seconds(120)))
            let ending = images.format == .jpeg ? "jpg" : images.format.rawValue
            let stem = FilePath.Component(ExportFolder.safe(asset.originalFilename ?? "file"))?.stem ?? "file"
            let file = ExportFolder.File(
                name: "\(stem).\(ending)",
                digest: SHA256.hash(data: bytes).hexadecimal,
                size: Int64(bytes.count)
            )
            for place in try Self.written({ try folder.places(of: [file]) }) {
                if !place.isPresent { try Self.written { try OutputFile.write(bytes, to: place.path) } }
                if sidecar { try await writeSidecar(asset, beside: place.path, library) }
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
            return true
        } catch {
            progress.report(CommandFailure(error, of: asset.id))
            return false
        }
    }

    /// Exports the files of one asset. Returns false if bytes are not available; the export continues with the next
    /// asset.
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
        // A film that is a part of the photo's file is in it already.
        if let film = current ? asset.currentFilm : asset.resource(.pairedVideo), film.offset == nil {
            resources.append(film)
        }
        let places = try folder.places(
            of: resources.map {
                ExportFolder.File(name: Self.fileName(of: $0, asset), digest: $0.digest, size: $0.size)
            }
        )
        var isComplete = true
        for (resource, place) in zip(resources, places) {
            isComplete = try await write(resource, of: asset, from: library, to: place, &progress) && isComplete
        }
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
            let writer = try OutputFileWriter(place.path)
            do throws(RPCError) {
                let bytes = library.resource(
                    asset: asset.id,
                    type: resource.type,
                    isNetworkAccessAllowed: downloads.download
                )
                for try await chunk in bytes {
                    do { try writer.write(chunk) } catch { throw ErrorCode.notEnoughSpace.error("\(error)") }
                }
            } catch {
                writer.abandon()
                progress.report(CommandFailure(error, of: asset.id))
                return false
            }
            try writer.finish()
        }
        if sidecar, resource.type != .pairedVideo, resource.type != .fullSizePairedVideo {
            try await writeSidecar(asset, beside: place.path, library)
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

    private func writeSidecar(_ asset: Asset, beside path: String, _ library: PhotoLibrary) async throws(RPCError) {
        let text = try await XMPSidecar.text(of: asset, in: library)
        do { try OutputFile.write(Array(text.utf8), to: path + ".xmp") } catch {
            throw ErrorCode.notEnoughSpace.error("\(error)")
        }
    }

    /// Returns the original name of a file. A render has that of the asset, with its own ending.
    private static func fileName(of resource: AssetResource, _ asset: Asset) -> String {
        let name = resource.originalFilename ?? asset.originalFilename ?? "file"
        guard resource.originalFilename == nil, resource.type != asset.originalResource?.type else { return name }
        guard let ending = resource.fileEnding else { return name }
        let stem = FilePath.Component(ExportFolder.safe(name))?.stem ?? "file"
        return "\(stem).\(ending)"
    }

    /// Performs file work; its errors end the export of this asset only.
    private static func written<Value>(_ body: () throws -> Value) throws(RPCError) -> Value {
        do { return try body() } catch { throw ErrorCode.notEnoughSpace.error("\(error)") }
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
    /// The film of a Live Photo as it is shown.
    fileprivate var currentFilm: AssetResource? { resource(.fullSizePairedVideo) ?? resource(.pairedVideo) }
}

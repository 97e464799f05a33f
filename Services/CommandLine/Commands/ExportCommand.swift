import ArgumentParser
import Contracts
import Glibc
import Hosting
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
            verified by their SHA-256. \
            With --size, images are rendered instead: with edits, or without them with --original.
            """
    )

    @Argument(help: "Asset identifiers, or - to read them from standard input.")
    var ids: [String] = []

    @OptionGroup var fetch: FetchOptions

    @Option(name: .shortAndLong, help: "Output folder; created if needed.")
    var output: String

    @Flag(help: "Export the edited version instead of the original; short for --version current.")
    var current = false

    @Option(help: "File to export: original, or current (with edits).")
    var version = "original"

    @Flag(help: "Also write an XMP sidecar for each file: metadata, adjustment data and edit history.")
    var sidecar = false

    @OptionGroup(title: "Images") var images: ExportImageOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] {
        [.catalog] + (images.size == nil ? [] : [.thumbnailer]) + (sidecar ? [.editor] : [])
    }

    func check() throws {
        _ = try fetch.fetch(of: nil)
        guard version == "original" || version == "current" else {
            throw CommandFailure.usage("--version must be original or current")
        }
        if images.size != nil, isCurrent { throw ValidationError("--current cannot be combined with --size") }
        _ = try images.request(.none)
    }

    private var isCurrent: Bool { current || version == "current" }

    func run(in library: PhotoLibrary, output: Output) async throws {
        if mkdir(self.output, 0o777) != 0, errno != EEXIST {
            throw CommandFailure(
                message: "\(self.output) cannot be created: \(Errno(rawValue: errno))",
                name: "not_written"
            )
        }
        var progress = ProgressReporter(output: output)
        if ids.isEmpty {
            let fetch = try await fetch.fetch(in: library)
            progress.begin(total: try await library.assets(fetch, count: 1).count)
            for try await asset in library.allAssets(fetch) {
                progress.step(isDone: try await export(asset, from: library, &progress))
            }
        } else {
            let ids = try Identifiers.read(ids)
            progress.begin(total: ids.count)
            for id in ids {
                progress.step(isDone: try await export(try await library.asset(id), from: library, &progress))
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
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        if let request = try images.request(asset.id) {
            return try await exportImage(asset, request, from: library, &progress)
        }
        return try await exportFile(asset, from: library, &progress)
    }

    private func exportImage(
        _ asset: Asset,
        _ request: ImageRequest,
        from library: PhotoLibrary,
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        do throws(RPCError) {
            let (result, bytes) = try await library.image(request)
            let stem = Self.fileName(asset, asset.originalFilename)
            let path = "\(output)/\(stem).\(images.format == .jpeg ? "jpg" : images.format.rawValue)"
            do { try OutputFile.write(bytes, to: path) } catch { throw ErrorCode.notEnoughSpace.error("\(error)") }
            if sidecar { try await writeSidecar(asset, beside: path, library) }
            progress.write(
                [
                    "asset": .string(asset.id.text), "file": .string(path), "size": JSON(bytes.count),
                    "pixelWidth": JSON(result.pixelWidth), "pixelHeight": JSON(result.pixelHeight),
                ],
                "\(path.printable)  \(result.pixelWidth) x \(result.pixelHeight)"
            )
            return true
        } catch {
            progress.report(CommandFailure(message: "\(asset.id): \(error.message)", name: error.name))
            return false
        }
    }

    /// Exports one file. Returns false if its bytes are not available; the export continues with the next asset.
    private func exportFile(
        _ asset: Asset,
        from library: PhotoLibrary,
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        guard let resource = isCurrent ? asset.currentResource : asset.originalResource else {
            progress.report(
                CommandFailure(message: "\(asset.id) has no such file", name: ErrorCode.missingResource.rawValue)
            )
            return false
        }
        var isComplete = try await write(resource, of: asset, from: library, &progress)
        // A film that is a part of the photo's file is in it already.
        if let film = isCurrent ? asset.currentFilm : asset.resource(.pairedVideo), film.offset == nil {
            isComplete = try await write(film, of: asset, from: library, &progress) && isComplete
        }
        return isComplete
    }

    private func write(
        _ resource: AssetResource,
        of asset: Asset,
        from library: PhotoLibrary,
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        var name = Self.fileName(asset, resource.originalFilename ?? asset.originalFilename)
        if resource.originalFilename == nil, resource.type != asset.originalResource?.type, resource.duration != nil {
            // Beside its photo, whose name it would have.
            name += resource.contentType == "com.apple.quicktime-movie" ? ".mov" : ".mp4"
        }
        let writer = try OutputFileWriter(self.output + "/" + name)
        do throws(RPCError) {
            for try await chunk in library.resource(asset: asset.id, type: resource.type) {
                do { try writer.write(chunk) } catch { throw ErrorCode.notEnoughSpace.error("\(error)") }
            }
        } catch {
            writer.abandon()
            progress.report(CommandFailure(message: "\(asset.id): \(error.message)", name: error.name))
            return false
        }
        try writer.finish()
        let path = output + "/" + name
        if sidecar, resource.type != .pairedVideo, resource.type != .fullSizePairedVideo {
            try await writeSidecar(asset, beside: path, library)
        }
        progress.write(
            [
                "asset": .string(asset.id.text), "file": .string(path), "size": .int(resource.size),
                "digest": .string(resource.digest),
            ],
            "\(path.printable)  \(QuantityFormatter.bytes(resource.size))"
        )
        return true
    }

    private func writeSidecar(_ asset: Asset, beside path: String, _ library: PhotoLibrary) async throws(RPCError) {
        let text = try await XMPSidecar.text(of: asset, in: library)
        do { try OutputFile.write(Array(text.utf8), to: path + ".xmp") } catch {
            throw ErrorCode.notEnoughSpace.error("\(error)")
        }
    }

    /// Returns the asset's identifier, which is unique, followed by its original name without unsafe characters.
    static func fileName(_ asset: Asset, _ original: String?) -> String {
        let given = original ?? "file"
        var name = ""
        for scalar in given.unicodeScalars {
            let isUnsafe =
                scalar == "/" || scalar == "\\" || scalar == "\0" || scalar.properties.generalCategory == .control
            name.unicodeScalars.append(isUnsafe ? "_" : scalar)
        }
        // File names have at most 255 bytes.
        while name.utf8.count > 200 { name.removeFirst() }
        return "\(asset.id)-\(name)"
    }
}

extension Asset {
    /// The film of a Live Photo as it is shown.
    fileprivate var currentFilm: AssetResource? { resource(.fullSizePairedVideo) ?? resource(.pairedVideo) }
}

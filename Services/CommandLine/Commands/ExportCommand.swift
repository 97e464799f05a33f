import ArgumentParser
import Contracts
import Glibc
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import SystemPackage

/// `safelight export`
struct ExportCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Save files of assets into a folder, checked by their SHA-256.",
        discussion: "Names the assets by identifier, or takes all of a fetch where none is named."
    )

    @Argument(help: "Identifiers, or - for standard input.")
    var ids: [String] = []

    @OptionGroup var fetch: FetchOptions

    @Option(name: .shortAndLong, help: "The folder; made where there is none.")
    var output: String

    @Flag(help: "What is shown, with the edits, instead of the original: the same as --version current.")
    var current = false

    @Option(help: "original, or current: with the edits.")
    var version = "original"

    @Flag(help: "Beside each file an XMP sidecar: metadata, the adjustment data of the last edit, and its history.")
    var sidecar = false

    @OptionGroup var client: ClientOptions

    func check() throws {
        _ = try fetch.fetch(of: nil)
        guard version == "original" || version == "current" else {
            throw CommandFailure.usage("--version is original or current")
        }
    }

    private var isCurrent: Bool { current || version == "current" }

    func run(in library: PhotoLibrary, output: Output) async throws {
        if mkdir(self.output, 0o777) != 0, errno != EEXIST {
            throw CommandFailure(
                message: "\(self.output) cannot be made: \(Errno(rawValue: errno))",
                name: "not_written"
            )
        }
        var failed = 0
        if ids.isEmpty {
            for try await asset in library.allAssets(try await fetch.fetch(in: library)) {
                if try await !export(asset, from: library, output) { failed += 1 }
            }
        } else {
            for id in try Identifiers.read(ids) {
                if try await !export(try await library.asset(id), from: library, output) { failed += 1 }
            }
        }
        if failed > 0 {
            output.note("\(Quantities.count(failed, "asset")) could not be exported")
            throw ExitCode(CommandFailure.Status.partly.rawValue)
        }
    }

    /// Saves one; false where its bytes cannot be had, which is no reason to stop.
    private func export(_ asset: Asset, from library: PhotoLibrary, _ output: Output) async throws -> Bool {
        guard let resource = isCurrent ? asset.currentResource : asset.originalResource else {
            output.report(
                CommandFailure(message: "\(asset.id) has no such file", name: Refusal.missingResource.rawValue)
            )
            return false
        }
        let name = Self.fileName(asset, resource)
        let writer = try OutputFileWriter(self.output + "/" + name)
        do throws(RPCError) {
            for try await chunk in library.resource(asset: asset.id, type: resource.type) {
                do { try writer.write(chunk) } catch { throw Refusal.notEnoughSpace.error("\(error)") }
            }
        } catch {
            writer.abandon()
            output.report(CommandFailure(message: "\(asset.id): \(error.message)", name: error.name))
            return false
        }
        try writer.finish()
        if sidecar {
            let text = try await Sidecar.text(of: asset, in: library)
            try OutputFile.write(Array(text.utf8), to: self.output + "/" + name + ".xmp")
        }
        try output.result([
            "asset": .string(asset.id.text), "file": .string(self.output + "/" + name), "size": .int(resource.size),
            "digest": .string(resource.digest),
        ]) { ["\((self.output + "/" + name).printable)  \(Quantities.bytes(resource.size))"] }
        return true
    }

    /// The identifier, which no other has, and the name it came with, made safe for a folder.
    static func fileName(_ asset: Asset, _ resource: AssetResource) -> String {
        let given = resource.originalFilename ?? asset.originalFilename ?? "file"
        var name = ""
        for scalar in given.unicodeScalars {
            let isUnsafe =
                scalar == "/" || scalar == "\\" || scalar == "\0" || scalar.properties.generalCategory == .control
            name.unicodeScalars.append(isUnsafe ? "_" : scalar)
        }
        // Names of files have at most 255 bytes.
        while name.utf8.count > 200 { name.removeFirst() }
        return "\(asset.id)-\(name)"
    }
}

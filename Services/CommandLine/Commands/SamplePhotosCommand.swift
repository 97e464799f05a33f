import ArgumentParser
import JSONValue
import SamplePhotos
import SystemPackage
import Glibc

/// `safelight sample-photos`, which creates photos for the demo and for experiments.
struct SamplePhotosCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sample-photos",
        abstract: "Create a dozen sample photos with dates, locations and all orientations.",
        discussion: "No file is replaced: one of the same name with other content is an error."
    )

    @Argument(help: "Output folder; created if needed.")
    var folder: String

    @Flag(help: "Print JSON, one line for each file.")
    var json = false

    func run() async throws {
        let output = Output(json: json)
        let root = FilePath(folder)
        let files = try await withThrowingTaskGroup(of: String.self) { group in
            for photo in SamplePhoto.dozen {
                let path = root.appending(photo.path)
                try Self.createFolder(path.removingLastComponent())
                group.addTask {
                    try Self.write(photo.jpeg, to: path.string)
                    return path.string
                }
            }
            return try await group.reduce(into: [String]()) { $0.append($1) }
        }
        for file in files.sorted() { try output.result(["file": .string(file)]) { [file.printable] } }
    }

    /// Writes a photo, unless the file exists with the same content.
    private static func write(_ bytes: [UInt8], to path: String) throws {
        guard access(path, F_OK) == 0 else { return try OutputFile.write(bytes, to: path, replaces: false) }
        guard try InputFile.read(path, limit: maxBytes) != bytes else { return }
        throw CommandFailure(
            message: "\(path) has other content and is not replaced; name another folder",
            name: "not_written"
        )
    }

    /// The maximum number of bytes to compare; no sample photo is larger.
    private static let maxBytes = 64 << 20

    /// Creates a folder and its parents.
    private static func createFolder(_ folder: FilePath) throws {
        var path = FilePath(root: folder.root)
        for component in folder.components {
            path.append(component)
            guard mkdir(path.string, 0o777) != 0, errno != EEXIST else { continue }
            throw CommandFailure(
                message: "\(path.string) cannot be created: \(Errno(rawValue: errno))",
                name: "not_written"
            )
        }
    }
}

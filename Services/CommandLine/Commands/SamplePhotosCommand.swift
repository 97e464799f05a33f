import ArgumentParser
import JSONValue
import SamplePhotos
import SystemPackage
import Glibc

/// `safelight sample-photos`, which creates photos for the demo and for experiments.
struct SamplePhotosCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sample-photos",
        abstract: "Create a dozen sample photos with dates, locations and all orientations."
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
                try Self.make(path.removingLastComponent())
                group.addTask {
                    try OutputFile.write(photo.jpeg, to: path.string)
                    return path.string
                }
            }
            return try await group.reduce(into: [String]()) { $0.append($1) }
        }
        for file in files.sorted() { try output.result(["file": .string(file)]) { [file.printable] } }
    }

    /// Creates a folder and its parents.
    private static func make(_ folder: FilePath) throws {
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

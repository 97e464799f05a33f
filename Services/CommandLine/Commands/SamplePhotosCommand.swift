import ArgumentParser
import JSONValue
import SamplePictures
import SystemPackage
import Glibc

/// `safelight sample-photos`, for the demo and for trying things out.
struct SamplePhotosCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sample-photos",
        abstract: "Make a dozen pictures with dates, places and all orientations in a folder.",
        shouldDisplay: false
    )

    @Argument(help: "The folder; made where there is none.")
    var folder: String

    @Flag(help: "Write JSON: one line for each file.")
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

    /// Makes a folder and those above it.
    private static func make(_ folder: FilePath) throws {
        var path = FilePath(root: folder.root)
        for component in folder.components {
            path.append(component)
            guard mkdir(path.string, 0o777) != 0, errno != EEXIST else { continue }
            throw CommandFailure(
                message: "\(path.string) cannot be made: \(Errno(rawValue: errno))",
                name: "not_written"
            )
        }
    }
}

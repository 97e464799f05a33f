import ArgumentParser
import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import Subprocess
import SystemPackage

/// Absolute paths for the services, and the folder of their executables.
enum ServicePaths {
    /// Returns the path resolved against the current directory, so that it is valid in every process. An empty path
    /// stays empty and is refused by the service that receives it.
    static func absolute(_ path: String) -> String {
        guard !path.isEmpty, !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return FilePath(String(cString: folder)).pushing(FilePath(path)).lexicallyNormalized().string
    }

    /// Returns the folder of this program, which also contains the executables of the services.
    ///
    /// - Throws: ``CommandFailure`` `not_found` if one of them is missing or not executable
    static func programFolder(with names: [ServiceName] = [.catalog]) throws -> FilePath {
        guard let program = realpath("/proc/self/exe", nil) else {
            throw CommandFailure(message: "the path of this executable cannot be determined", name: "not_found")
        }
        defer { free(program) }
        let folder = FilePath(String(cString: program)).removingLastComponent()
        for name in names where access(folder.appending(name.rawValue).string, X_OK) != 0 {
            throw CommandFailure(
                message: "\(folder.string) has no program \(name.rawValue); build all of them with `make build`",
                name: "not_found"
            )
        }
        return folder
    }
}

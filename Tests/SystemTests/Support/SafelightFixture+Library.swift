import Foundation
import TestSupport

extension SafelightFixture {
    /// The paths of the files in the resource store, sorted. The names are the digests of the contents.
    var storedFiles: [String] {
        get throws {
            let root = folder.file("library/resources")
            return try FileManager.default.subpathsOfDirectory(atPath: root).map { root + "/" + $0 }
                .filter { ($0 as NSString).lastPathComponent.count == 64 }.sorted()
        }
    }
}

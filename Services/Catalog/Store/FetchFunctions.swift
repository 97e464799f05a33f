import Basics
import GRDB
import PhotoModel
import Storage
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// SQL functions for predicates that SQLite cannot evaluate by itself. They run the same code as evaluation in memory.
enum FetchFunctions {
    /// `safelight_match(text, kind, letters, pattern)`: a text test; returns 0 if the text is NULL.
    static let match: DatabaseFunction = {
        // A query applies one test to many rows, so the last test is kept.
        let last = Mutex<(key: [String], test: TextMatch)?>(nil)
        return DatabaseFunction("safelight_match", argumentCount: 4, pure: true) { values in
            guard let text = String.fromDatabaseValue(values[0]) else { return 0 }
            let key = values[1...].compactMap { String.fromDatabaseValue($0) }
            let test = last.withLock { last -> TextMatch? in
                if let last, last.key == key { return last.test }
                guard key.count == 3, let kind = TextMatch.Kind(rawValue: key[0]),
                    let folding = TextFolding(letters: key[1])
                else { return nil }
                let test = TextMatch(kind, key[2], folding: folding)
                last = (key, test)
                return test
            }
            return test?.matches(text) == true ? 1 : 0
        }
    }()

    /// `safelight_is_local(digest)`: 1 if the bytes of a digest are on this machine. Without remote storage they all
    /// are.
    ///
    /// - Parameter files: the files of a library with remote storage; nil without
    static func isLocal(_ files: @escaping @Sendable () -> ResourceStore?) -> DatabaseFunction {
        DatabaseFunction("safelight_is_local", argumentCount: 1, pure: false) { values in
            guard let files = files(), let digest = Data.fromDatabaseValue(values[0]) else { return 1 }
            return files.isLocal(digest.hexadecimal) ? 1 : 0
        }
    }

    /// `safelight_distance(latitude, longitude, latitude, longitude)`: the distance between two locations in metres.
    static let distance = DatabaseFunction("safelight_distance", argumentCount: 4, pure: true) { values in
        let numbers = values.compactMap { Double.fromDatabaseValue($0) }
        guard numbers.count == 4, let circle = GeoCircle(latitude: numbers[2], longitude: numbers[3], radius: 0) else {
            return nil
        }
        return circle.distance(latitude: numbers[0], longitude: numbers[1])
    }
}

import GRDB
import PhotoModel
import Synchronization

/// What predicates ask that SQLite cannot answer by itself: evaluated by the same code as in memory.
enum FetchFunctions {
    /// `safelight_match(text, kind, letters, pattern)`: a text test; 0 for a missing text.
    static let match: DatabaseFunction = {
        // One test is asked of many rows in turn.
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

    /// `safelight_distance(latitude, longitude, latitude, longitude)`: metres between two places.
    static let distance = DatabaseFunction("safelight_distance", argumentCount: 4, pure: true) { values in
        let numbers = values.compactMap { Double.fromDatabaseValue($0) }
        guard numbers.count == 4, let circle = GeoCircle(latitude: numbers[2], longitude: numbers[3], radius: 0) else {
            return nil
        }
        return circle.distance(latitude: numbers[0], longitude: numbers[1])
    }
}

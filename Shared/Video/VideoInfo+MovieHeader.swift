public import ImageFormats

extension VideoInfo {
    /// The properties and tags of the video as a movie header, with the keys of QuickTime.
    public var header: MovieHeader {
        var header = MovieHeader(contentType: contentType)
        header.pixelWidth = pixelWidth
        header.pixelHeight = pixelHeight
        header.duration = duration
        header.frameRate = frameRate
        for (names, key) in Self.keys {
            if let value = names.lazy.compactMap({ tags[$0] }).first { header.values[key] = value }
        }
        header.created = (tags["creation_time"] ?? tags["date_utc"]).flatMap(Self.microseconds)
        // A creation time without "Z", as in AVI, is in local time.
        let dates = ["date_recorded", "date", "creation_time"]
        if header.created == nil, let date = dates.lazy.compactMap({ tags[$0] }).first, date.utf8.count >= 10 {
            header.values["creationdate"] = date
        }
        return header
    }

    /// FFmpeg's names of tags, preferred ones first, and QuickTime's key for them.
    private static let keys: [(names: [String], key: String)] = [
        (["title"], "title"), (["artist", "author"], "author"), (["copyright"], "copyright"),
        (["description", "synopsis"], "description"), (["comment"], "comment"), (["keywords"], "keywords"),
        (["location", "com.apple.quicktime.location.iso6709"], "location.ISO6709"),
        (["make", "com.apple.quicktime.make", "com.android.manufacturer"], "make"),
        (["model", "com.apple.quicktime.model", "com.android.model"], "model"),
        (["com.apple.quicktime.camera.lens_model"], "camera.lens_model"), (["software"], "software"),
    ]

    /// Returns the microseconds since 1970 of a time in FFmpeg's form, "2024-06-01T10:30:00.000000Z".
    private static func microseconds(_ text: String) -> Int64? {
        let numbers = text.split { !$0.isNumber }.compactMap { Int64($0) }
        guard numbers.count >= 6, text.hasSuffix("Z"), (1971...9999).contains(numbers[0]),
            (1...12).contains(numbers[1]), (1...31).contains(numbers[2]), (0...23).contains(numbers[3]),
            (0...59).contains(numbers[4]), (0...60).contains(numbers[5])
        else { return nil }
        // Days since 1970 in the proleptic Gregorian calendar, computed with years that begin in March.
        let year = numbers[0] - (numbers[1] <= 2 ? 1 : 0)
        let (era, month) = (year / 400, (numbers[1] + 9) % 12)
        let yearOfEra = year - era * 400
        let day = (153 * month + 2) / 5 + numbers[2] - 1
        let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + day - 719_468
        return (days * 86_400 + numbers[3] * 3600 + numbers[4] * 60 + numbers[5]) * 1_000_000
    }
}

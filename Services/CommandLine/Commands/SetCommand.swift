import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight set`
struct SetCommand: SelectionCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Set rating, caption, keywords, date and location of assets.",
        discussion: """
            The originals are never modified: the values are stored in the library, and exports with --sidecar contain \
            them. `safelight undo` undoes all changes of the last command.
            """
    )

    @OptionGroup var assets: AssetSelection

    @Option(parsing: .unconditional, help: "Stars, 0 (unrated) to 5.")
    var rating: Int?

    @Option(help: "Caption; an empty text removes it.")
    var caption: String?

    @Option(name: .customLong("keyword"), help: "Replace all keywords by this one. May be repeated.")
    var keywords: [String] = []

    @Option(help: "Add a keyword. May be repeated.")
    var addKeyword: [String] = []

    @Option(help: "Remove a keyword. May be repeated.")
    var removeKeyword: [String] = []

    @Flag(help: "Remove all keywords.")
    var noKeywords = false

    @Option(
        help: ArgumentHelp(
            "When they were taken, with the offset from UTC: 2024-06-01T12:30:00+02:00.",
            valueName: "date"
        )
    )
    var date: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Where they were taken, in degrees: 52.52,13.41.", valueName: "latitude,longitude")
    )
    var location: String?

    @Flag(help: "Remove the location.")
    var noLocation = false

    @Flag(help: "Print how many assets would be changed, and change nothing.")
    var dryRun = false

    @OptionGroup var client: ClientOptions

    func validate() throws {
        guard !keywords.isEmpty != noKeywords || keywords.isEmpty else {
            throw ValidationError("--keyword and --no-keywords exclude each other")
        }
        guard location == nil || !noLocation else {
            throw ValidationError("--location and --no-location exclude each other")
        }
        guard try patch() != AssetPatch() || !addKeyword.isEmpty || !removeKeyword.isEmpty else {
            throw ValidationError("give at least one value, for example --rating 4")
        }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let ids = try await assets.read(in: library)
        let patch = try patch()
        guard !dryRun else {
            return try output.result(["assets": JSON(ids.count)]) {
                ["the values of \(QuantityFormatter.count(ids.count, "asset")) would be set; nothing was changed"]
            }
        }
        try await BatchedChanges.perform(ids, in: library, output, "changed") { ids in
            ids.map {
                .updateAsset(
                    .init(id: .id($0), set: patch, addKeywords: addKeyword, removeKeywords: removeKeyword)
                )
            }
        }
    }

    /// Returns the values to set.
    func patch() throws -> AssetPatch {
        var patch = AssetPatch()
        if let rating {
            guard (0...5).contains(rating) else { throw ValidationError("--rating must be a number from 0 to 5") }
            patch.rating = rating
        }
        if let caption { patch.caption = .some(caption.isEmpty ? nil : caption) }
        if !keywords.isEmpty || noKeywords { patch.keywords = keywords }
        if let date {
            let (time, offset) = try Self.parseDate(date)
            patch.creationDate = .some(time)
            patch.creationOffset = .some(offset)
        }
        if let location { patch.location = .some(try Self.location(location)) }
        if noLocation { patch.location = .some(nil) }
        return patch
    }

    /// An earlier date would be lost in an export with a sidecar.
    private static let firstYear = 1800

    /// In seconds. A larger offset would be lost in an export with a sidecar.
    private static let maxOffset = 15 * 3600

    /// Parses a date with its offset from UTC in seconds.
    static func parseDate(_ text: String) throws -> (microseconds: Int64, offset: Int) {
        guard let time = Timestamp.parse(text), text.contains("T") || text.contains("t") else {
            throw ValidationError(
                "--date: \"\(text.prefix(40))\" is not a date with an offset, as 2024-06-01T12:30:00+02:00"
            )
        }
        guard let year = Int(text.prefix(4)), year >= Self.firstYear else {
            throw ValidationError("--date: the years are \(Self.firstYear) to 9999, as in the metadata of files")
        }
        guard let last = text.last, last != "Z", last != "z" else { return (time, 0) }
        // The parser has checked the form: a sign, two digits, a colon, two digits.
        let numbers = text.suffix(5).split(separator: ":").compactMap { Int($0) }
        let seconds = (numbers.first ?? 0) * 3600 + (numbers.last ?? 0) * 60
        guard seconds <= Self.maxOffset else {
            throw ValidationError("--date: an offset is at most 15 hours, as in the metadata of files")
        }
        return (time, text.dropLast(5).last == "-" ? -seconds : seconds)
    }

    static func location(_ text: String) throws -> Location {
        let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map {
            Double($0.trimmingPrefix(" "))
        }
        guard numbers.count == 2, let latitude = numbers[0], let longitude = numbers[1],
            (-90...90).contains(latitude), (-180...180).contains(longitude)
        else {
            throw ValidationError(
                "--location: \"\(text.prefix(40))\" is not latitude,longitude in degrees, as 52.52,13.41"
            )
        }
        guard latitude != 0 || longitude != 0 else {
            throw ValidationError("--location: 0,0 means no location in the metadata of files; use --no-location")
        }
        return Location(latitude: latitude, longitude: longitude)
    }
}

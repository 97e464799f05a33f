import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

/// Fetching and arranging by the command line, as Shared/docs/fetching.md shows it.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct OrganizingTests {
    /// Runs commands, which must succeed.
    private struct Commands {
        let services: SafelightFixture

        /// Runs `safelight … --json`, and returns the printed lines.
        func json(_ words: String...) throws -> [JSON] {
            let run = try services.safelight(words + ["--json"])
            try #require(run.status == 0, "\(words): \(run.errors)")
            return try run.output.split(separator: "\n").map { try JSON(parsing: String($0)) }
        }

        /// Runs `safelight …`, and returns the output.
        func text(_ words: String...) throws -> String {
            let run = try services.safelight(words)
            try #require(run.status == 0, "\(words): \(run.errors)")
            return run.output
        }

        /// Returns the identifiers that a fetch prints.
        func ids(_ words: String...) throws -> [String] {
            let run = try services.safelight(["fetch", "--ids"] + words)
            try #require(run.status == 0, "\(words): \(run.errors)")
            return run.output.split(separator: "\n").map(String.init)
        }
    }

    @Test(.spec("S-16", "S-18", "S-20", "S-80", "T-13"))
    func `the command line offers albums, folders, smart albums, moments, the trash and predicates`() throws {
        let services = try SafelightFixture("arranging")
        for number in 1...5 {
            let bytes = TestImages.jpeg(
                width: 64,
                height: 48,
                date: number < 4 ? "2024:05:0\(number) 10:00:00" : "2023:01:01 0\(number):00:00",
                latitude: 46.5,
                longitude: 8,
                seed: UInt64(number)
            )
            try services.folder.write(bytes, to: "photos/\(number).jpg")
        }
        try services.start([.catalog])
        let commands = Commands(services: services)
        _ = try commands.text("import", services.folder.file("photos"))
        let ids = try commands.ids("--sort", "originalFilename")
        try #require(ids.count == 5)

        _ = try commands.text("folder", "create", "Trips")
        _ = try commands.text("album", "create", "Alps", "--in", "Trips")
        _ = try commands.text("album", "add", "Alps", ids[0], ids[1], ids[2])
        _ = try commands.text("album", "move", "Alps", "1", "2", "--to", "0")
        #expect(try commands.ids("--album", "Alps") == [ids[1], ids[2], ids[0]])
        #expect(try commands.ids("--album", "Trips", "--sort", "originalFilename") == Array(ids.prefix(3)))
        _ = try commands.text("album", "remove", "Alps", ids[2])
        _ = try commands.text("album", "rename", "Alps", "Mountains")
        #expect(try commands.ids("--album", "Mountains") == [ids[1], ids[0]])
        let tree = try commands.text("folder", "list", "--albums")
        #expect(tree.contains("Trips/") && tree.contains("  Mountains"))

        _ = try commands.text("favorite", ids[0], ids[4])
        #expect(try commands.ids("--album", "Favorites", "--sort", "rating") == [ids[0], ids[4]].sorted())
        let smart = try commands.json("album", "list", "--smart")
        let favorites = smart.first { $0["id"]?.stringValue == SmartAlbum.favorites.id.text }
        #expect(smart.count == SmartAlbum.allCases.count && favorites?["count"] == 2)

        let before = "isFavorite == YES AND creationDate < \"2024-01-01T00:00:00Z\""
        #expect(try commands.ids("--where", before) == [ids[4]])
        let between = "creationDate BETWEEN {\"2024-05-01\", \"2024-05-03\"}"
        #expect(try commands.ids("--album", "Favorites", "--where", between) == [ids[0]])
        let others = "(mediaSubtypes & 2) != 0 OR mediaType == \"video\""
        #expect(try commands.text("fetch", "--where", others, "--count") == "0\n")
        let sorted = try commands.ids("--sort", "creationDate:desc", "--limit", "2", "--offset", "1")
        #expect(sorted == [ids[1], ids[0]])
        let refused = try services.safelight(["fetch", "--where", "shoeSize > 3"])
        #expect(refused.status != 0 && refused.errors.contains("shoeSize"))

        _ = try commands.text("favorite", "--where", "creationDate >= \"2023-01-01\"")
        #expect(try Set(commands.ids("--album", "Favorites")) == Set(ids))
        _ = try commands.text("favorite", "--off", "--where", "isFavorite == YES", "--limit", "2")
        #expect(try commands.ids("--album", "Favorites").count == 3)
        _ = try commands.text("album", "create", "Chosen")
        _ = try commands.text("album", "add", "Chosen", "--where", "isFavorite == YES")
        #expect(try commands.ids("--album", "Chosen").count == 3)
        _ = try commands.text("album", "delete", "Chosen", "--yes")
        let neither = try services.safelight(["favorite"])
        #expect(neither.status != 0 && neither.errors.contains("--where"))

        let years = try commands.json("moments")
        #expect(years.compactMap { $0["title"]?.stringValue } == ["2023", "2024"])
        let moments = try commands.json("moments", "2024")
        #expect(moments.compactMap { $0["title"]?.stringValue } == ["2024-05-01", "2024-05-02", "2024-05-03"])
        let day = try #require(moments.first?["id"]?.stringValue)
        #expect(try commands.ids("--album", day) == [ids[0]])

        _ = try commands.text("trash", ids[0])
        #expect(try commands.ids("--trash") == [ids[0]] && commands.ids("--album", "Mountains") == [ids[1]])
        _ = try commands.text("untrash", ids[0])
        #expect(try commands.ids("--album", "Mountains") == [ids[1], ids[0]])

        _ = try commands.text("folder", "delete", "Trips", "--yes")
        #expect(try commands.json("album", "list").isEmpty && commands.ids().count == 5)
        #expect(services.stop() == [])
    }

    @Test func `edit takes the assets of a fetch, as many requests as necessary`() throws {
        let services = try SafelightFixture("edit-fetch")
        let count = 103
        for number in 0..<count {
            let bytes = TestImages.jpeg(width: 32, height: 24, seed: UInt64(number))
            try services.folder.write(bytes, to: "photos/\(number).jpg")
        }
        try services.start([.catalog, .changeBroker, .editor])
        let commands = Commands(services: services)
        _ = try commands.text("import", services.folder.file("photos"))
        let some = try commands.ids("--limit", "2")
        _ = try commands.text("favorite", some[0], some[1])

        let favorites = ["--where", "isFavorite == YES"]
        let tried = try commands.json("edit", "--where", "isFavorite == YES", "--exposure", "0.2", "--dry-run")
        #expect(tried.count == 1 && tried[0]["done"] == 2)
        let edited = try services.safelight(["edit"] + favorites + ["--exposure", "0.2"])
        #expect(edited.status == 0, "\(edited.output) \(edited.errors)")
        #expect(edited.output.hasPrefix("edited 2 assets, changes #"), "\(edited.output)")
        #expect(try Set(commands.ids("--where", "hasAdjustments == YES")) == Set(some))
        let all = try commands.json("edit", "--sort", "originalFilename", "--rotate", "90")
        #expect(all.compactMap { $0["done"]?.intValue } == [100, 3])
        #expect(try commands.ids("--where", "hasAdjustments == YES").count == count)

        let none = try services.safelight(["edit", "--where", "rating == 5", "--exposure", "0.2"])
        #expect(none.status == 0 && none.output.isEmpty && none.errors.contains("no assets"), "\(none.errors)")
        let neither = try services.safelight(["edit", "--exposure", "0.2"])
        #expect(neither.status != 0 && neither.errors.contains("--where"))
        let preview = try services.safelight(["edit"] + favorites + ["--exposure", "0.2", "--preview", "p.jpg"])
        #expect(preview.status != 0 && preview.errors.contains("--preview"))
        #expect(services.stop() == [])
    }
}

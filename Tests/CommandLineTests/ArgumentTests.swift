import ArgumentParser
import Contracts
import class Foundation.FileManager
import Hosting
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import CommandLine

/// The parsing of arguments into requests.
@Suite(.timeLimit(.minutes(5)))
struct ArgumentTests {
    private let id = "a00000000000000000000000001"

    private func parse<Command: ParsableCommand>(_: Command.Type, _ arguments: String...) throws -> Command {
        try #require(try SafelightCommand.parseAsRoot(arguments) as? Command)
    }

    // MARK: Fetch

    @Test func `the flags of fetch are parsed into a fetch`() throws {
        let command = try parse(
            FetchCommand.self,
            "fetch",
            "--where",
            "isFavorite == YES",
            "--sort",
            "creationDate:desc",
            "--sort",
            "originalFilename",
            "--limit",
            "5",
            "--offset",
            "2",
            "--hidden"
        )
        let fetch = try command.fetch.fetch(of: nil)
        #expect(fetch.kind == .assets(.library))
        #expect(fetch.predicate == (try Predicate(format: "isFavorite == TRUE", of: .asset)))
        #expect(fetch.sort.map(\.key) == [.creationDate, .originalFilename])
        #expect(fetch.sort.map(\.ascending) == [false, true])
        #expect((fetch.limit, fetch.offset) == (5, 2))
        #expect(fetch.includeHidden)
    }

    @Test func `a fetch without flags includes all assets that are not hidden`() throws {
        let fetch = try parse(FetchCommand.self, "fetch").fetch.fetch(of: nil)
        #expect(fetch == (try Fetch(.assets(.library))))
        #expect(!fetch.includeHidden)
    }

    @Test(arguments: ["creationDate:up", "a:b:c", "nothing", ""])
    func `an invalid sort key is refused`(text: String) throws {
        let command = try parse(FetchCommand.self, "fetch", "--sort", text)
        #expect(throws: PredicateError.self) { try command.fetch.fetch(of: nil) }
    }

    @Test func `an invalid predicate is a usage error`() throws {
        let command = try parse(FetchCommand.self, "fetch", "--where", "isFavorite = maybe")
        let error = #expect(throws: PredicateError.self) { try command.fetch.fetch(of: nil) }
        #expect(CommandFailure(try #require(error)).status == .usage)
    }

    // MARK: Edit

    private func list(_ arguments: String...) throws -> AdjustmentList {
        let command = try SafelightCommand.parseAsRoot(["edit", id] + arguments) as? EditCommand
        return try #require(command).adjustments.list()
    }

    @Test func `the flags of edit become operations in the documented order`() throws {
        let list = try list(
            "--saturation",
            "0.2",
            "--black-and-white",
            "--exposure",
            "-0.5",
            "--crop",
            "0,0.25,1,0.5",
            "--rotate",
            "90",
            "--flip",
            "horizontal",
            "--straighten",
            "-2",
            "--contrast",
            "0.1",
            "--temperature",
            "-0.3"
        )
        #expect(
            list.operations == [
                .rotate(.quarter), .flip(.horizontal), .straighten(-2),
                .crop(UnitRect(x: 0, y: 0.25, width: 1, height: 0.5)), .exposure(-0.5), .temperature(-0.3),
                .contrast(0.1), .saturation(0.2), .blackAndWhite(1),
            ]
        )
    }

    @Test(arguments: [
        ["--exposure", "9"], ["--rotate", "45"], ["--flip", "sideways"], ["--crop", "0,0,2,1"], ["--crop", "0,0,1"],
        ["--crop", "0,0,1,1,1"], ["--crop", "a,b,c,d"], ["--straighten", "nan"],
    ])
    func `an invalid operation is refused with an error that names the allowed values`(arguments: [String]) throws {
        let command = try SafelightCommand.parseAsRoot(["edit", id] + arguments) as? EditCommand
        let error = #expect(throws: AdjustmentError.self) { try #require(command).adjustments.list() }
        #expect(CommandFailure(try #require(error)).message.contains("allowed"))
    }

    @Test func `an edit without operations is refused`() {
        #expect(throws: CommandFailure.self) { try list() }
    }

    // MARK: Images

    @Test func `the flags of thumb are parsed into an image request`() throws {
        let request = try parse(
            ThumbCommand.self,
            "thumb",
            id,
            "--size",
            "640x480",
            "--fill",
            "--exact",
            "--format",
            "webp",
            "--quality",
            "70",
            "--original"
        ).request(Asset(id: try #require(ObjectID(id))))
        #expect(request.targetSize == .size(width: 640, height: 480))
        #expect((request.contentMode, request.resizeMode) == (.aspectFill, .exact))
        #expect((request.format, request.quality, request.version) == (.webp, 70, .original))
    }

    @Test(arguments: [MediaType.image, .video])
    func `images and frames of videos that are smaller are not enlarged without a flag`(_ type: MediaType) throws {
        var asset = Asset(id: try #require(ObjectID(id)))
        (asset.mediaType, asset.pixelWidth, asset.pixelHeight) = (type, 320, 240)
        for (words, size) in [([], TargetSize.maximum), (["--exact"], .size(width: 1000, height: 1000))] {
            let command = try SafelightCommand.parseAsRoot(["thumb", id, "--size", "1000"] + words) as? ThumbCommand
            #expect(try #require(command).request(asset).targetSize == size, "\(words)")
        }
        for (words, size) in [("1000", TargetSize.maximum), ("100", .size(width: 100, height: 100))] {
            #expect(try ExportImageOptions.parse(["--size", words]).request(asset)?.targetSize == size)
        }
    }

    @Test func `a size is WxH, one number or max`() throws {
        #expect(try ThumbCommand.size("512") == .size(width: 512, height: 512))
        #expect(try ThumbCommand.size("1x16384") == .size(width: 1, height: 16_384))
        #expect(try ThumbCommand.size("max") == .maximum)
        for text in ["", "x", "0", "-1", "1x2x3", "16385", "10x", "big", "99999999999999999999"] {
            #expect(throws: CommandFailure.self, "\(text)") { try ThumbCommand.size(text) }
        }
    }

    // MARK: AssetArguments

    @Test func `a line is a row of a listing, an identifier, or a name with its spaces`() throws {
        var asset = Asset(id: try #require(ObjectID(id)))
        asset.originalFilename = "a b.jpg"
        #expect(AssetArguments.reference(inLine: FetchCommand.row(asset, number: 7)) == id)
        #expect(AssetArguments.reference(inLine: FetchCommand.row(asset, number: 123_456)) == id)
        #expect(AssetArguments.reference(inLine: FetchCommand.heading) == nil)
        #expect(AssetArguments.reference(inLine: " \(id)\r") == id)
        #expect(AssetArguments.reference(inLine: "IMG_1 (2).jpg") == "IMG_1 (2).jpg")
        #expect(AssetArguments.reference(inLine: "  my photo  1.jpg ") == "my photo  1.jpg")
        #expect(AssetArguments.reference(inLine: "copy of \(id)") == "copy of \(id)")
        #expect(AssetArguments.reference(inLine: "@2-5") == "@2-5")
        #expect(AssetArguments.reference(inLine: "id") == "id")
        for empty in ["", "  ", "\t"] { #expect(AssetArguments.reference(inLine: empty) == nil) }
    }

    @Test func `a prefix of an identifier has at least four characters`() {
        #expect(AssetLookup.isPrefix("a000") && AssetLookup.isPrefix(String(id.dropLast())))
        for text in ["a00", "b0000", "c0000", "a00i0", "IMG_1.jpg", id] {
            #expect(!AssetLookup.isPrefix(text), "\(text)")
        }
    }

    @Test func `a number names an asset of the last listing`() throws {
        let folder = try TemporaryFolder("listing")
        let listing = LastListing { $0 == "XDG_STATE_HOME" ? folder.path : nil }
        let none = #expect(throws: CommandFailure.self) { try listing.ids("@1") }
        #expect(none?.message.contains("safelight fetch") == true)
        let ids = try (1...9).map { try #require(ObjectID("a0000000000000000000000000\($0)")) }
        listing.write(ids)
        #expect(try listing.ids("@1") == [ids[0]])
        #expect(try listing.ids("@2-4") == Array(ids[1...3]))
        for text in ["@", "@0", "@x", "@4-2", "@10", "@1-10", "@1-2-3", "@-1"] {
            #expect(throws: CommandFailure.self, "\(text)") { try listing.ids(text) }
        }
        // The assets of a listing that is printed in pieces are stored with each piece. They are not mixed with those
        // of another listing that begins meanwhile.
        var first = listing.begin()
        #expect(try listing.ids("@1") == [ids[0]])
        first.append(Array(ids[3...4]))
        #expect(try listing.ids("@1-2") == Array(ids[3...4]))
        first.append([ids[5]])
        #expect(try listing.ids("@3") == [ids[5]])
        listing.write([ids[8]])
        first.append([ids[0]])
        #expect(try listing.ids("@1") == [ids[8]])
        #expect(throws: CommandFailure.self) { try listing.ids("@2") }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("safelight")) == ["listing"])
        listing.write([])
        #expect(throws: CommandFailure.self) { try listing.ids("@1") }
        // Without a home folder nothing is stored, and nothing fails.
        LastListing { _ in nil }.write(ids)
    }

    @Test func `the format of an image is that of its file's extension`() throws {
        #expect(try ThumbCommand.format(nil, of: nil) == .jpeg)
        #expect(try ThumbCommand.format(nil, of: "a/b.c/x") == .jpeg)
        #expect(try ThumbCommand.format(nil, of: "x.JPEG") == .jpeg)
        #expect(try ThumbCommand.format(nil, of: "x.webp") == .webp)
        #expect(try ThumbCommand.format(.png, of: "x.png") == .png)
        #expect(try ThumbCommand.format(.png, of: "x.picture") == .png)
        #expect(throws: CommandFailure.self) { try ThumbCommand.format(nil, of: "x.bmp") }
        #expect(throws: CommandFailure.self) { try ThumbCommand.format(.png, of: "x.jpg") }
    }

    @Test(arguments: ["x.png", "x.webp", "x.gif", "a/x.avif"])
    func `an image that is always a JPEG is not written with another extension`(file: String) throws {
        for words in [
            ["compare", id, "-o", file], ["sheet", "-o", file],
            ["edit", id, "--flip", "horizontal", "--preview", file],
        ] {
            let command = try #require(try SafelightCommand.parseAsRoot(words) as? any LibraryCommand)
            let error = #expect(throws: CommandFailure.self, "\(words)") { try command.check() }
            #expect(error?.status == .usage && error?.message.contains("JPEG") == true)
        }
        for name in ["x.jpg", "x.JPEG", "-", "x", "a.b/x"] { try OutputFile.requireJPEG(name) }
        try parse(SheetCommand.self, "sheet", "-o", "x.html").check()
    }

    @Test(arguments: [
        ["--where", "isFavorite == YES", "x"], ["--album", "Sea", "x"], ["--format", "png"], ["--original"],
        ["--quality", "90"],
    ])
    func `options of export that would have no effect are refused`(words: [String]) throws {
        #expect(throws: (any Error).self) { try SafelightCommand.parseAsRoot(["export", "-o", "out"] + words) }
        let sized = ["export", "-o", "out", "--size", "9", "--format", "png", "--original", "--quality", "90"]
        #expect(throws: Never.self) { try SafelightCommand.parseAsRoot(sized) }
    }

    // MARK: Values

    @Test func `a date needs an offset, and a location two numbers`() throws {
        #expect(try SetCommand.parseDate("2024-06-01T12:30:00Z") == (1_717_245_000_000_000, 0))
        #expect(try SetCommand.parseDate("2024-06-01T12:30:00+02:00") == (1_717_237_800_000_000, 7200))
        #expect(try SetCommand.parseDate("2024-06-01T12:30:00.5-03:30") == (1_717_257_600_500_000, -12_600))
        #expect(try SetCommand.parseDate("2024-06-01T12:30:00+15:00").offset == 54_000)
        for text in [
            "2024-06-01", "now", "2024-06-01T12:30:00", "", "2024-06-01T12:30:00-15:30", "1650-06-01T12:30:00Z",
        ] {
            #expect(throws: ValidationError.self, "\(text)") { try SetCommand.parseDate(text) }
        }
        #expect(try SetCommand.location("52.5, -13.25") == Location(latitude: 52.5, longitude: -13.25))
        for text in ["", "1", "91,0", "0,181", "a,b", "1,2,3", "1,,2", ",1,2", "1,2,", "0,-0"] {
            #expect(throws: ValidationError.self, "\(text)") { try SetCommand.location(text) }
        }
        #expect(throws: (any Error).self) { try parse(SetCommand.self, "set", id) }
    }

    @Test func `a title without a visible character is refused for albums and folders`() throws {
        for arguments in [["create"], ["rename", "Alps"]] {
            for kind in ["album", "folder"] {
                #expect(throws: Never.self) { try SafelightCommand.parseAsRoot([kind] + arguments + ["Alps 2"]) }
                for title in ["", " ", "\t"] {
                    #expect(throws: (any Error).self, "\(kind)") {
                        try SafelightCommand.parseAsRoot([kind] + arguments + [title])
                    }
                }
            }
        }
    }

    @Test func `an empty path does not name the current folder`() throws {
        #expect(ServicePaths.absolute("") == "")
        let options = try LibraryOptions.parse(["--library", ""])
        let error = #expect(throws: HostingError.self) { try options.resolve() }
        #expect(error.map { "\($0)".contains("--library") && "\($0)".contains("empty") } == true)
    }

    @Test func `the nearest word is suggested, and nothing if no word is similar`() {
        let words = ["fetch", "favorite", "folder", "undo", "untrash"]
        #expect(SpellingSuggestion.nearest(to: "fech", of: words) == "fetch")
        #expect(SpellingSuggestion.nearest(to: "favourite", of: words) == "favorite")
        #expect(SpellingSuggestion.nearest(to: "udno", of: words) == "undo")
        #expect(SpellingSuggestion.nearest(to: "xyz", of: words) == nil)
        #expect(SpellingSuggestion.distance("kitten", "sitting") == 3)
    }

    @Test func `many identifiers are divided into transactions`() throws {
        let ids = Array(repeating: ObjectID.none, count: 2001)
        #expect(BatchedChanges.split(ids, by: 1000).map(\.count) == [1000, 1000, 1])
        #expect(BatchedChanges.split([], by: 1000).isEmpty)
    }

    // MARK: Help

    @Test func `every command has an abstract, usage and --json`() throws {
        var names: [String] = []
        func check(_ command: any ParsableCommand.Type, _ path: [String]) {
            let configuration = command.configuration
            let help = SafelightCommand.helpMessage(for: command, includeHidden: true, columns: 100)
            #expect(!configuration.abstract.isEmpty, "\(path)")
            #expect(help.contains("USAGE:"), "\(path)")
            let inner = configuration.subcommands
            if inner.isEmpty { #expect(help.contains("--json"), "\(path)") }
            if inner.isEmpty { names.append(path.joined(separator: " ")) }
            for next in inner {
                check(next, path + [next.configuration.commandName ?? "\(next)".lowercased()])
            }
        }
        check(SafelightCommand.self, [])
        for name in [
            "up", "import", "fetch", "show", "thumb", "edit", "revert", "favorite", "hide", "delete", "watch", "status",
            "sheet", "album list", "album create", "album rename", "album add", "album remove", "album delete",
            "export",
            "describe format", "describe edit",
        ] { #expect(names.contains(name), "\(name)") }
    }
}

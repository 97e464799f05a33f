import ArgumentParser
import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import CommandLine

/// The requests with which commands read assets: only the members that they use, and many assets at a time.
@Suite(.timeLimit(.minutes(1)))
struct FetchedMembersTests {
    private static func id(_ kind: String, _ number: Int) throws -> ObjectID {
        let digits = "\(number)"
        // Only identifiers of derived objects have no time.
        return try #require(ObjectID(kind + "01" + String(repeating: "0", count: 24 - digits.count) + digits))
    }

    /// Returns assets named IMG_1.jpg, IMG_2.jpg and so on.
    private static func assets(_ count: Int, _ change: (inout Asset) -> Void = { _ in }) throws -> [Asset] {
        try (1...count).map { number in
            var asset = Asset(id: try id("a", number))
            asset.originalFilename = "IMG_\(number).jpg"
            change(&asset)
            return asset
        }
    }

    /// Runs the body with a library that uses the catalog, and with a listing in a temporary folder.
    private func serving(
        _ catalog: LargeAssetCatalog,
        _ body: @Sendable (PhotoLibrary, LastListing) async throws -> Void
    ) async throws {
        try await ClientFixture.with { fixture in
            try await fixture.serving(fixture.endpoints.catalog, catalog) {
                let listing = LastListing { $0 == "XDG_STATE_HOME" ? fixture.folder.path : nil }
                try await body(fixture.library, listing)
            }
        }
    }

    private static func parse<Command: ParsableCommand>(_: Command.Type, _ words: [String]) throws -> Command {
        try #require(try SafelightCommand.parseAsRoot(words) as? Command)
    }

    /// Returns the error that some work throws; nil if it throws none.
    private static func error(of work: () async throws -> Void) async -> (any Error)? {
        do {
            try await work()
            return nil
        } catch {
            return error
        }
    }

    private static func failure(of work: () async throws -> Void) async -> CommandFailure? {
        await error(of: work) as? CommandFailure
    }

    // MARK: Listings

    @Test func `the duplicates of a page are read as rows and with one request, however large they are`() async throws {
        let ids = try Self.assets(40).map(\.id)
        let groups = stride(from: 0, to: 40, by: 2).map { [ids[$0], ids[$0 + 1]] }
        let catalog = LargeAssetCatalog(try Self.assets(40), groups: groups)
        try await serving(catalog) { library, listing in
            let command = try Self.parse(DuplicatesCommand.self, ["duplicates"])
            try await command.run(in: library, output: Output(json: false), listing)
            #expect(try listing.ids("@1-40") == ids)
            #expect(throws: CommandFailure.self) { try listing.ids("@41") }
        }
        #expect(catalog.methods == ["fetch.duplicates", "fetch.assets"])
        #expect(catalog.members == [AssetMembers.row])
    }

    @Test func `no more duplicates are read than the limit allows`() async throws {
        let ids = try Self.assets(6).map(\.id)
        let catalog = LargeAssetCatalog(try Self.assets(6), groups: [[ids[0], ids[1]], [ids[2], ids[3], ids[4]]])
        try await serving(catalog) { library, listing in
            let command = try Self.parse(DuplicatesCommand.self, ["duplicates", "--limit", "1"])
            try await command.run(in: library, output: Output(json: false), listing)
            #expect(try listing.ids("@1-2") == Array(ids[..<2]))
        }
        #expect(catalog.fetches.compactMap(\.fetch.ids) == [Array(ids[..<2])])
    }

    @Test func `a listing is read as rows`() async throws {
        let catalog = LargeAssetCatalog(try Self.assets(5))
        try await serving(catalog) { library, listing in
            let command = try Self.parse(FetchCommand.self, ["fetch", "--limit", "0"])
            try await command.run(in: library, output: Output(json: false), listing)
            #expect(try listing.ids("@1-5") == (try Self.assets(5)).map(\.id))
        }
        #expect(catalog.members == [AssetMembers.row])
    }

    @Test func `a row is the same for the requested members as for the whole asset`() throws {
        var asset = try Self.assets(1)[0]
        (asset.pixelWidth, asset.pixelHeight, asset.creationOffset) = (60, 40, 7200)
        (asset.creationDate, asset.mediaType) = (1_717_237_800_000_000, .video)
        (asset.isFavorite, asset.isHidden, asset.adjustmentFormatIdentifier) = (true, true, "a")
        (asset.caption, asset.keywords) = ("long", ["long"])
        let table = JSONTable(
            "Asset",
            "",
            unknown: .ignored,
            blank: Asset(id: .none),
            Asset.table.fields.filter { AssetMembers.row.contains($0.name) }
        )
        let part = try table.decode(asset.json)
        #expect(FetchCommand.row(part, number: 1) == FetchCommand.row(asset, number: 1))
        #expect(part.caption == nil && part.keywords.isEmpty)
    }

    @Test(arguments: [
        AssetMembers.name, AssetMembers.row, AssetMembers.image, AssetMembers.export, AssetMembers.figure,
    ])
    func `the members that commands request are members of assets`(members: [String]) {
        #expect(Set(members).isSubset(of: Asset.table.fields.map(\.name)) && members.contains("id"))
    }

    @Test func `identifiers are read without other members, and for a short result with a second one`() async throws {
        let assets = try Self.assets(5)
        let catalog = LargeAssetCatalog(assets)
        try await serving(catalog) { library, listing in
            for words in [[], ["--limit", "3"]] {
                let command = try Self.parse(FetchCommand.self, ["fetch", "--ids"] + words)
                try await command.run(in: library, output: Output(json: false), listing)
            }
            var pages = IdentifierPages(FetchDescription(.assets), in: library)
            let page = try #require(try await pages.next())
            #expect(page.ids == assets.map(\.id) && page.count == 5)
            let end = try await pages.next()
            #expect(end?.count == nil)
        }
        #expect(catalog.members == [["id"], ["id", "revision"], ["id"]])
        #expect(catalog.fetches.map(\.count) == [Projection.maxIDs, 3, Projection.maxIDs])
    }

    // MARK: Names

    @Test func `an ambiguous name is refused with the first ten assets and the number of the others`() async throws {
        let assets = try Self.assets(15) { $0.originalFilename = "IMG_1.jpg" }
        let catalog = LargeAssetCatalog(assets)
        try await serving(catalog) { library, listing in
            let failure = await Self.failure {
                _ = try await AssetLookup(in: library, listing: listing).ids("IMG_1")
            }
            let message = try #require(failure?.message)
            #expect(failure?.name == "multiple_identifiers")
            #expect(assets.prefix(10).allSatisfy { message.contains("\($0.id) (IMG_1.jpg)") })
            #expect(!message.contains(assets[10].id.text) && message.hasSuffix(" and 5 more"), "\(message)")
        }
        // The other two requests are for assets with the whole name, and for those with one extension.
        #expect(catalog.members == Array(repeating: AssetMembers.name, count: 3))
    }

    @Test func `a name selects the file with the whole name, or the only one with one extension`() async throws {
        var assets = try Self.assets(6)
        let names = ["deadbee", "deadbee.png", "IMG.jpg", "IMG.edited.jpg", "PXL.MP.jpg", "PXL.NIGHT.jpg"]
        for (index, name) in names.enumerated() { assets[index].originalFilename = name }
        try await serving(LargeAssetCatalog(assets)) { [assets] library, listing in
            let lookup = AssetLookup(in: library, listing: listing)
            let ids = try await lookup.ids(["deadbee", "deadbee.png", "IMG", "IMG.edited", "PXL.MP"])
            #expect(ids == [0, 1, 2, 3, 4].map { assets[$0].id })
            let several = await Self.failure { _ = try await lookup.ids("PXL") }
            #expect(several?.name == "multiple_identifiers")
        }
    }

    @Test func `names on standard input are looked up together`() async throws {
        let assets = try Self.assets(150)
        let catalog = LargeAssetCatalog(assets)
        try await serving(catalog) { library, _ in
            var lines = (1...150).map { $0.isMultiple(of: 2) ? "IMG_\($0)" : "IMG_\($0).jpg" }
            let ids = try await AssetArguments.read(["-"], in: library) { lines.isEmpty ? nil : lines.removeFirst() }
            #expect(ids == assets.map(\.id))
        }
        #expect(catalog.members == [AssetMembers.name, AssetMembers.name])
    }

    @Test func `an ambiguous or unknown name is refused if several names are looked up together`() async throws {
        var assets = try Self.assets(4)
        assets[3].originalFilename = "IMG_1.heic"
        let catalog = LargeAssetCatalog(assets)
        try await serving(catalog) { [assets] library, listing in
            let lookup = AssetLookup(in: library, listing: listing)
            let ids = try await lookup.ids(["IMG_2", "IMG_1.heic", "IMG_1.jpg", "IMG_2.jpg"])
            #expect(ids == [assets[1].id, assets[3].id, assets[0].id, assets[1].id])
            let several = await Self.failure { _ = try await lookup.ids(["IMG_2", "IMG_1"]) }
            #expect(several?.name == "multiple_identifiers")
            let none = await Self.failure { _ = try await lookup.ids(["IMG_2", "IMG"]) }
            #expect(none?.name == "identifier_not_found")
        }
        #expect(AssetLookup.names(ofFile: "a.b.jpg") == ["a.b.jpg", "a", "a.b"])
    }

    @Test func `an ambiguous title is refused with the first ten albums and the number of the others`() async throws {
        let albums = try (1...13).map { number in
            var album = AssetCollection(id: try Self.id("c", number))
            album.title = number == 13 ? "Alps" : "Sea"
            return album
        }
        let catalog = LargeAssetCatalog(collections: albums)
        try await serving(catalog) { library, _ in
            let failure = await Self.failure { _ = try await AlbumLookup.container("Sea", in: library) }
            let message = try #require(failure?.message)
            #expect(message.contains(albums[9].id.text) && message.hasSuffix(" and 2 more"), "\(message)")
            #expect(try await AlbumLookup.container("Alps", in: library) == albums[12].id)
        }
        #expect(catalog.methods == ["fetch.collections", "fetch.collections"])
    }

    @Test func `all file names that a shell can complete are read, and nothing else of the assets`() async throws {
        let catalog = LargeAssetCatalog(try Self.assets(150))
        try await serving(catalog) { library, _ in
            let names = try await Completions.filenames("IMG_", in: library)
            #expect(names.count == 150)
        }
        #expect(catalog.members == [["originalFilename"]])
    }

    // MARK: Assets by identifiers

    @Test func `assets by identifiers are read in pieces and in order, with those in the trash`() async throws {
        var assets = try Self.assets(250)
        assets[6].trashedDate = 1
        let catalog = LargeAssetCatalog(assets)
        let ids = assets.map(\.id) + [try Self.id("a", 999)]
        let expected = assets.map(\.id.text) + ["none"]
        try await serving(catalog) { library, _ in
            for members in [AssetMembers.name, nil] {
                var named = NamedAssets(ids, in: library, members: members)
                var read: [String] = []
                while let entry = try await named.next() { read.append(entry.asset?.id.text ?? "none") }
                #expect(read == expected, "\(members ?? [])")
            }
        }
        // The requests are for three pieces and for the asset in the trash.
        #expect(catalog.members.filter { $0 == AssetMembers.name }.count == 4)
    }

    @Test func `several assets are shown with one request for the assets and one for their albums`() async throws {
        let album = AssetCollection(id: try Self.id("c", 1))
        let membership = Membership(collection: album.id, key: OrderKey.after(nil))
        let assets = try Self.assets(5) { $0.memberships = [membership] }
        let catalog = LargeAssetCatalog(assets, maxWhole: 1000, collections: [album])
        try await serving(catalog) { library, _ in
            let command = try Self.parse(ShowCommand.self, ["show"] + assets.map(\.id.text))
            try await command.run(in: library, output: Output(json: false))
        }
        #expect(catalog.methods == ["fetch.assets", "fetch.collections"])
    }

    @Test func `the files of an asset in the trash are released from quarantine`() async throws {
        var assets = try Self.assets(3) { asset in
            let digest = String(repeating: "0", count: 64)
            asset.resources = [AssetResource(type: .photo, digest: digest, size: 1, contentType: "public.jpeg")]
        }
        assets[2].trashedDate = 1
        let catalog = LargeAssetCatalog(assets)
        let words = ["quarantine", "lift"] + assets.map(\.id.text)
        try await serving(catalog) { library, _ in
            try await Self.parse(QuarantineCommand.Lift.self, words).run(in: library, output: Output(json: true))
        }
        #expect(catalog.methods.filter { $0 == "quarantine.lift" }.count == 3)
        #expect(catalog.members == [["id", "resources"], ["id", "resources"]])
    }

    // MARK: Files and images

    @Test func `an export reads the members that it needs, of many assets with one request`() async throws {
        let assets = try Self.assets(5)
        let catalog = LargeAssetCatalog(assets)
        let folder = try TemporaryFolder("export")
        for names in [[], assets.map(\.id.text)] {
            let words = ["export", "--output", folder.file("out")] + names
            try await serving(catalog) { library, _ in
                // The assets have no files, so that each of them is reported.
                let command = try Self.parse(ExportCommand.self, words)
                let error = await Self.error { try await command.export(from: library, Output(json: false)) }
                #expect((error as? ExitCode)?.rawValue == CommandFailure.Status.refused.rawValue)
            }
        }
        #expect(catalog.members == [AssetMembers.export, AssetMembers.export])
    }

    @Test(arguments: [("sheet", AssetMembers.name), ("warm", ["id"])])
    func `sheet and warm read and count their assets with one request`(
        word: String,
        members: [String]
    ) async throws {
        let catalog = LargeAssetCatalog(try Self.assets(5))
        try await ClientFixture.with { fixture in
            let library = fixture.library
            // The thumbnailer refuses the requests that follow.
            try await fixture.serving(fixture.endpoints.thumbnailers[0], LargeAssetCatalog()) {
                try await fixture.serving(fixture.endpoints.catalog, catalog) {
                    let command = try #require(try SafelightCommand.parseAsRoot([word]) as? any LibraryCommand)
                    let error = await Self.error { try await command.run(in: library, output: Output(json: true)) }
                    #expect(error is RPCError)
                }
            }
        }
        #expect(catalog.members == [members])
    }

    @Test func `empty folders are listed without a request for each`() async throws {
        var lists = try (1...4).map { CollectionList(id: try Self.id("l", $0)) }
        for index in lists.indices { (lists[index].title, lists[index].parent) = ("Folder \(index)", .root) }
        (lists[3].parent, lists[0].childCount) = (lists[0].id, 1)
        let catalog = LargeAssetCatalog(lists: lists)
        try await serving(catalog) { library, _ in
            let command = try Self.parse(FolderCommand.List.self, ["folder", "list"])
            try await command.run(in: library, output: Output(json: true))
        }
        // The requests are for the root and for the folder that is not empty.
        #expect(catalog.methods == ["fetch.collections", "fetch.collections"])
    }
}

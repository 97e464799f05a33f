import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight album`
struct AlbumCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "album",
        abstract: "List, create and change albums.",
        subcommands: [List.self, Create.self, Rename.self, Add.self, Remove.self, Move.self, Delete.self],
        defaultSubcommand: List.self
    )

    /// `safelight album list`
    struct List: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "List the albums.")
        @Flag(help: "List smart albums instead, with the number of assets in each.") var smart = false
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            guard !smart else { return try await AlbumCommand.listSmart(library, output) }
            var table = AlbumCommand.table
            let fetch = try Fetch(.collections(type: .album, subtype: nil)).wireForm
            var position = 0
            while true {
                let page = try await library.collections(fetch, from: position, count: 500)
                for album in page.collections {
                    if output.isJSON { try output.json(album.json) }
                    let count = album.estimatedAssetCount.map { "\($0)" } ?? "-"
                    table.add([album.id.text, count, album.title ?? "-"])
                }
                position += page.collections.count
                if page.collections.isEmpty || position >= page.count { break }
            }
            guard position > 0 else {
                return output.note("no albums; `safelight album create` creates one")
            }
            if !output.isJSON { try output.lines(table.lines) }
        }
    }

    fileprivate static var table: TextTable {
        TextTable([
            .init(title: "id"), .init(title: "photos", alignment: .right), .init(title: "title", width: 80),
        ])
    }

    /// Lists every smart album with the number of assets in it.
    fileprivate static func listSmart(_ library: PhotoLibrary, _ output: Output) async throws {
        let fetches = try SmartAlbum.allCases.map { try Fetch(.assets(.smartAlbum($0))).wireForm }
        let counts = try await library.counts(fetches).counts
        var table = Self.table
        for (album, count) in zip(SmartAlbum.allCases, counts) {
            if output.isJSON { try output.json(["id": .string(album.id.text), "count": JSON(count)]) }
            table.add([album.id.text, "\(count)", album.texts.title])
        }
        if !output.isJSON { try output.lines(table.lines) }
    }

    /// `safelight album create`
    struct Create: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "Create an album, empty or with assets.")
        @Argument(help: "Title of the album.") var title: String
        @Argument(
            help: "Assets: identifiers, file names, @3 of the last listing, or - to read them from standard input.",
            completion: Completions.assets
        )
        var ids: [String] = []
        @OptionGroup var folderOption: FolderOption
        @Flag(help: "Create it even if there is an album of this title.") var another = false
        @OptionGroup var client: ClientOptions

        var reportsAtSignals: Bool { true }

        func validate() throws { try AlbumLookup.checkTitle(title) }

        func run(in library: PhotoLibrary, output: Output) async throws {
            let assets = try await AssetArguments.read(ids, in: library)
            let parent = try await folderOption.reference(in: library)
            if !another {
                let others = try await AlbumLookup.readableIDs {
                    try await AlbumLookup.albums(title, in: library).entities.map(\.id)
                }
                try AlbumLookup.requireUnusedTitle(others, "album", title)
            }
            let first = assets.prefix(ChangeRecord.maxEntities - 1).map { ObjectReference.id($0) }
            var transactions = CommandTransactions()
            let result = try await library.perform(
                [.createCollection(.init(ref: "album", title: title, add: first, parent: parent))],
                transaction: transactions.next()
            )
            guard let id = result.id("album") else { return }
            try output.result(result.json) { ["\(id)  \(title.printable)"] }
            let rest = Array(assets.dropFirst(first.count))
            guard !rest.isEmpty else { return }
            try await BatchedChanges.perform(
                rest,
                in: library,
                output,
                "added",
                besides: 1,
                before: first.count,
                transactions: transactions
            ) { ids in
                [.updateCollection(.init(id: .id(id), add: ids.map { .id($0) }))]
            }
        }
    }

    /// `safelight album rename`
    struct Rename: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "Rename an album.")
        @Argument(help: "Identifier or title of the album.", completion: Completions.albums) var album: String
        @Argument(help: "The new title.") var title: String
        @Flag(help: "Rename it even if there is another album of this title.") var another = false
        @OptionGroup var client: ClientOptions

        func validate() throws { try AlbumLookup.checkTitle(title) }

        func run(in library: PhotoLibrary, output: Output) async throws {
            let album = try await AlbumLookup.find(album, in: library)
            if !another {
                let others = try await AlbumLookup.readableIDs {
                    try await AlbumLookup.albums(title, in: library).entities.map(\.id)
                }
                try AlbumLookup.requireUnusedTitle(others.filter { $0 != album.id }, "album", title)
            }
            let result = try await library.perform([.updateCollection(.init(id: .id(album.id), title: title))])
            try output.result(result.json) { ["\(album.id)  \(title.printable)"] }
        }
    }

    /// `safelight album add`
    struct Add: SelectionCommand {
        static let configuration = CommandConfiguration(
            abstract: "Append assets to an album; assets that are already in it keep their position."
        )
        @Argument(help: "Identifier or title of the album.", completion: Completions.albums) var album: String
        @OptionGroup var assets: AssetSelection
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let ids = try await assets.read(in: library)
            let album = try await AlbumLookup.find(album, in: library)
            try await BatchedChanges.perform(ids, in: library, output, "added", besides: 1) { ids in
                [.updateCollection(.init(id: .id(album.id), add: ids.map { .id($0) }))]
            }
        }
    }

    /// `safelight album remove`
    struct Remove: SelectionCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove assets from an album; they stay in the library."
        )
        @Argument(help: "Identifier or title of the album.", completion: Completions.albums) var album: String
        @OptionGroup var assets: AssetSelection
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let ids = try await assets.read(in: library)
            let album = try await AlbumLookup.find(album, in: library)
            try await BatchedChanges.perform(ids, in: library, output, "removed", besides: 1) { ids in
                [.updateCollection(.init(id: .id(album.id), remove: ids))]
            }
        }
    }

    /// `safelight album move`
    struct Move: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Move assets to another position within an album.",
            discussion: "Positions count from 0, in the order of `safelight fetch --album`."
        )
        @Argument(help: "Identifier or title of the album.", completion: Completions.albums) var album: String
        @Argument(help: "Current positions of the assets.") var from: [Int]
        @Option(help: "New position of the first of them, counted without the moved assets.") var to: Int
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let album = try await AlbumLookup.find(album, in: library)
            let page = try await library.assets(try Fetch(.assets(.collection(album.id))).wireForm, count: 0)
            let result = try await library.perform([
                .updateCollection(
                    .init(
                        id: .id(album.id),
                        edits: [.move(from: Array(Set(from)).sorted(), to: to)],
                        snapshot: page.token
                    )
                )
            ])
            try BatchedChanges.reportMoved(result, output)
        }
    }

    /// `safelight album delete`
    struct Delete: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete an album; its photos stay in the library."
        )
        @Argument(help: "Identifier or title of the album.", completion: Completions.albums) var album: String
        @Flag(name: .shortAndLong, help: "Do not ask for confirmation.") var yes = false
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let album = try await AlbumLookup.find(album, in: library)
            let title = album.title ?? album.id.text
            try Confirmation.ask("Delete the album \"\(title.printable)\"?", isGiven: yes)
            let result = try await library.perform([.deleteCollections(.init(ids: [album.id]))])
            try output.result(result.json) { ["deleted \(album.id)  \(title.printable)"] }
        }
    }
}

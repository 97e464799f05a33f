import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight folder`
struct FolderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "folder",
        abstract: "List, create and change folders of albums.",
        subcommands: [List.self, Create.self, Rename.self, Add.self, Delete.self],
        defaultSubcommand: List.self
    )

    /// `safelight folder list`
    struct List: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "List folders as a tree.")
        @Argument(help: "Identifier or title of the folder. Default: the root.", completion: Completions.folders)
        var folder: String?
        @Flag(help: "List the albums in the folders as well.") var albums = false
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            var start = ObjectID.root
            if let folder { start = try await AlbumLookup.folder(folder, in: library).id }
            try await list(start, depth: 0, library, output)
        }

        private func list(_ folder: ObjectID, depth: Int, _ library: PhotoLibrary, _ output: Output) async throws {
            var fetch = FetchDescription(.children)
            fetch.container = folder
            var position = 0
            while true {
                let page = try await library.collections(fetch, from: position, count: 500)
                let members = Dictionary(page.collections.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
                let lists = Dictionary(page.lists.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
                for id in page.order where albums || lists[id] != nil {
                    let title = (members[id]?.title ?? lists[id]?.title ?? "-").printable
                    if output.isJSON {
                        if let json = members[id]?.json ?? lists[id]?.json { try output.json(json) }
                    } else {
                        let indent = String(repeating: "  ", count: depth)
                        try output.line("\(id)  \(indent)\(title)\(lists[id] == nil ? "" : "/")")
                    }
                    // The recursion ends: the catalog limits the depth of folders.
                    if let inner = lists[id], inner.childCount > 0 {
                        try await list(id, depth: depth + 1, library, output)
                    }
                }
                position += page.order.count
                if page.order.isEmpty || position >= page.count { return }
            }
        }
    }

    /// `safelight folder create`
    struct Create: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "Create a folder.")
        @Argument(help: "Title of the folder.") var title: String
        @OptionGroup var folderOption: FolderOption
        @Flag(help: "Create it even if there is a folder of this title.") var another = false
        @OptionGroup var client: ClientOptions

        func validate() throws { try AlbumLookup.checkTitle(title) }

        func run(in library: PhotoLibrary, output: Output) async throws {
            let parent = try await folderOption.reference(in: library)
            if !another {
                let others = try await AlbumLookup.readableIDs {
                    try await AlbumLookup.folders(title, in: library).entities.map(\.id)
                }
                try AlbumLookup.requireUnusedTitle(others, "folder", title)
            }
            let result = try await library.perform([.createList(.init(ref: "folder", title: title, parent: parent))])
            try output.result(result.json) { ["\(result.id("folder")?.text ?? "")  \(title.printable)"] }
        }
    }

    /// `safelight folder rename`
    struct Rename: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "Rename a folder.")
        @Argument(help: "Identifier or title of the folder.", completion: Completions.folders) var folder: String
        @Argument(help: "The new title.") var title: String
        @Flag(help: "Rename it even if there is another folder of this title.") var another = false
        @OptionGroup var client: ClientOptions

        func validate() throws { try AlbumLookup.checkTitle(title) }

        func run(in library: PhotoLibrary, output: Output) async throws {
            let folder = try await AlbumLookup.folder(folder, in: library)
            if !another {
                let others = try await AlbumLookup.readableIDs {
                    try await AlbumLookup.folders(title, in: library).entities.map(\.id)
                }
                try AlbumLookup.requireUnusedTitle(others.filter { $0 != folder.id }, "folder", title)
            }
            let result = try await library.perform([.updateList(.init(id: .id(folder.id), title: title))])
            try output.result(result.json) { ["\(folder.id)  \(title.printable)"] }
        }
    }

    /// `safelight folder add`
    struct Add: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Move albums and folders to the end of a folder."
        )
        @Argument(help: "Identifier or title of the folder.", completion: Completions.folders) var folder: String
        @Argument(help: "Identifiers of albums and folders.") var ids: [String]
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let children = try ids.map { text -> ObjectReference in
                guard let id = ObjectID(text), id.kind != .asset else {
                    throw CommandFailure.usage("\"\(text.prefix(80))\" is not the identifier of an album or folder")
                }
                return .id(id)
            }
            let folder = try await AlbumLookup.folder(folder, in: library)
            let result = try await library.perform([.updateList(.init(id: .id(folder.id), edits: [.add(children)]))])
            try BatchedChanges.reportMoved(result, output)
        }
    }

    /// `safelight folder delete`
    struct Delete: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete a folder with the albums and folders in it; the photos stay in the library."
        )
        @Argument(help: "Identifier or title of the folder.", completion: Completions.folders) var folder: String
        @Flag(name: .shortAndLong, help: "Do not ask for confirmation.") var yes = false
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let folder = try await AlbumLookup.folder(folder, in: library)
            let title = folder.title ?? folder.id.text
            try Confirmation.ask("Delete the folder \"\(title.printable)\" and all albums in it?", isGiven: yes)
            let result = try await library.perform([.deleteLists(.init(ids: [folder.id]))])
            try output.result(result.json) { ["deleted \(folder.id)  \(title.printable)"] }
        }
    }
}

import ArgumentParser
import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Looks up albums and folders by identifier or title.
enum AlbumLookup {
    /// Returns the album with this identifier or title.
    ///
    /// - Throws: ``CommandFailure`` if there is none, or more than one with the title
    static func find(_ text: String, in library: PhotoLibrary) async throws -> AssetCollection {
        if let id = ObjectID(text), id.kind == .assetCollection {
            let page = try await library.collections(try Fetch(.collectionIDs(IDList([id]))).wireForm, count: 1)
            if let album = page.collections.first { return album }
            throw CommandFailure(message: "there is no album \(id)", name: "identifier_not_found")
        }
        return try requireOne(of: try await albums(text, in: library), "album", text)
    }

    /// Returns the identifier of the album, smart album, moment or folder with this identifier or title.
    static func container(_ text: String, in library: PhotoLibrary) async throws -> ObjectID {
        if let id = ObjectID(text), id.kind != .asset { return id }
        let albums = try await albums(text, in: library)
        if albums.entities.isEmpty {
            if let smart = smart(text) { return smart.id }
            let folders = try await folders(text, in: library)
            if !folders.entities.isEmpty { return try requireOne(of: folders, "folder", text).id }
        }
        return try requireOne(of: albums, "album", text).id
    }

    /// Returns the smart album with this English name, ignoring case, or nil.
    static func smart(_ text: String) -> SmartAlbum? {
        SmartAlbum.allCases.first { folded($0.texts.title) == folded(text) || $0.subtype.rawValue == text }
    }

    /// Returns the folder with this identifier or title.
    ///
    /// - Throws: ``CommandFailure`` if there is none, or more than one with the title
    static func folder(_ text: String, in library: PhotoLibrary) async throws -> CollectionList {
        try requireOne(of: try await folders(text, in: library), "folder", text)
    }

    /// Albums or folders that a look-up found.
    struct Found<Entity> {
        /// The first of them, at most ten.
        var entities: [Entity] = []
        /// The number of all.
        var count = 0
    }

    /// The maximum number of albums or folders that are read, and listed in an error message.
    private static let maxListed = 10

    /// Returns the only entity found, or throws an error that lists several.
    private static func requireOne<Entity: Identified>(
        of found: Found<Entity>,
        _ kind: String,
        _ text: String
    ) throws -> Entity {
        guard let first = found.entities.first else {
            throw CommandFailure(
                message: "there is no \(kind) \"\(text.prefix(80))\"; `safelight \(kind) list` lists them",
                name: "identifier_not_found"
            )
        }
        guard found.count == 1 else {
            throw CommandFailure(
                message: "more than one \(kind) has the title \"\(text)\"; use one of their identifiers: "
                    + QuantityFormatter.list(found.entities.map(\.id.text), of: found.count),
                name: "multiple_identifiers"
            )
        }
        return first
    }

    /// Returns the albums or folders that `find` returns; none if the identity may not read them.
    static func readableIDs(_ find: () async throws -> [ObjectID]) async throws -> [ObjectID] {
        do { return try await find() } catch let error as RPCError where error.errorCode == .accessDenied { return [] }
    }

    /// Throws a usage error if a title has no visible character, so that a listing could not show it.
    static func checkTitle(_ text: String) throws {
        guard text.contains(where: { !$0.isWhitespace }) else { throw ValidationError("the title must not be empty") }
    }

    /// Throws if an album or folder has this title already: the title would then be ambiguous.
    static func requireUnusedTitle(_ others: [ObjectID], _ kind: String, _ title: String) throws {
        guard let other = others.first else { return }
        throw CommandFailure(
            message:
                "there is \(kind == "album" ? "an album" : "a folder") \"\(title)\" already, \(other); --another allows "
                + "a second one, which then has to be named by its identifier",
            name: ErrorCode.conflict.rawValue
        )
    }

    /// The maximum number of bytes of a title: nothing has a longer one, and predicates refuse much longer texts.
    private static let maxTitleBytes = 1024

    /// Returns the folders with this title, or the one with this identifier.
    static func folders(_ text: String, in library: PhotoLibrary) async throws -> Found<CollectionList> {
        guard text.utf8.count <= maxTitleBytes else { return Found() }
        var fetch = FetchDescription(.lists)
        if let id = ObjectID(text), id.kind == .collectionList {
            fetch.ids = [id]
        } else {
            fetch.collectionType = ListType.folder.rawValue
            fetch.predicate = ["key": "title", "op": "==", "value": .string(text)]
        }
        let page = try await library.lists(fetch, count: maxListed)
        return Found(entities: page.lists, count: page.count)
    }

    /// Returns the album with this title, or nil if there is none.
    ///
    /// - Throws: ``CommandFailure`` if more than one has the title
    static func existing(_ title: String, in library: PhotoLibrary) async throws -> AssetCollection? {
        let found = try await albums(title, in: library)
        return found.entities.isEmpty ? nil : try requireOne(of: found, "album", title)
    }

    /// The time for which the creation of an album is repeated while other commands change the root folder.
    private static let creationTime = Duration.seconds(30)

    /// Returns the album with this title; creates it in the root folder if there is none.
    ///
    /// Several commands may do so at the same time. Each new album changes the root folder, whose revision is therefore
    /// a condition: it is read before the title is looked up, and after a conflict everything begins again.
    ///
    /// - Throws: ``CommandFailure`` if more than one has the title
    static func findOrCreate(
        _ title: String,
        in library: PhotoLibrary,
        _ transactions: inout CommandTransactions
    ) async throws -> ObjectID {
        var root = FetchDescription(.lists)
        root.ids = [.root]
        let clock = ContinuousClock()
        let end = clock.now + creationTime
        while true {
            let folder = try await library.lists(root, count: 1).lists.first
            if let album = try await existing(title, in: library) { return album.id }
            var requests: [ChangeRequest] = []
            if let folder { requests.append(.updateList(.init(id: .id(folder.id), ifRevision: folder.revision))) }
            requests.append(.createCollection(.init(ref: "album", title: title)))
            do throws(RPCError) {
                let result = try await library.perform(requests, transaction: transactions.next())
                guard let id = result.id("album") else {
                    throw ErrorCode.internalError.error("the catalog returned no id for the new album")
                }
                return id
            } catch {
                guard error.errorCode == .conflict, clock.now < end else { throw error }
                await TaskDelay.retryDelay(.milliseconds(Int.random(in: 10...200)))
            }
        }
    }

    /// Returns the albums with this title.
    static func albums(_ title: String, in library: PhotoLibrary) async throws -> Found<AssetCollection> {
        guard title.utf8.count <= maxTitleBytes else { return Found() }
        let predicate = try Predicate(format: "title == %@", arguments: [.string(title)], of: .assetCollection)
        let fetch = try Fetch(.collections(type: .album, subtype: nil), predicate: predicate)
        let page = try await library.collections(fetch.wireForm, count: maxListed)
        return Found(entities: page.collections, count: page.count)
    }
}

/// An entity with an identifier.
private protocol Identified {
    var id: ObjectID { get }
}

extension AssetCollection: Identified {}
extension CollectionList: Identified {}

/// `--in`: the parent folder of a new album or folder.
struct FolderOption: ParsableArguments {
    @Option(
        name: .customLong("in"),
        help: ArgumentHelp("Parent folder. Default: the root.", valueName: "id|title"),
        completion: Completions.folders
    )
    var folder: String?

    /// Returns the folder, or nil for the root.
    func reference(in library: PhotoLibrary) async throws -> ObjectReference? {
        guard let folder else { return nil }
        return .id(try await AlbumLookup.folder(folder, in: library).id)
    }
}

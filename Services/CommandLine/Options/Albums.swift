import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Finding albums by what people call them.
enum Albums {
    /// The album with an identifier or a title.
    static func find(_ text: String, in library: PhotoLibrary) async throws -> AssetCollection {
        if let id = ObjectID(text), id.kind == .assetCollection {
            let page = try await library.collections(try Fetch(.collectionIDs(IDList([id]))).wireForm, count: 1)
            if let album = page.collections.first { return album }
            throw CommandFailure(message: "there is no album \(id)", name: "identifier_not_found")
        }
        return try one(of: try await titled(text, in: library), "album", text)
    }

    /// What assets can be in: an album, smart album, moment or folder.
    static func container(_ text: String, in library: PhotoLibrary) async throws -> ObjectID {
        if let id = ObjectID(text), id.kind != .asset { return id }
        let albums = try await titled(text, in: library)
        if albums.isEmpty {
            if let smart = smart(text) { return smart.id }
            if let folder = try await folders(text, in: library).first { return folder.id }
        }
        return try await find(text, in: library).id
    }

    /// The smart album with an English name, whatever its case.
    static func smart(_ text: String) -> SmartAlbum? {
        SmartAlbum.allCases.first { folded($0.words.title) == folded(text) || $0.subtype.rawValue == text }
    }

    /// The folder with an identifier or a title.
    static func folder(_ text: String, in library: PhotoLibrary) async throws -> CollectionList {
        try one(of: try await folders(text, in: library), "folder", text)
    }

    /// The one that a text may mean; several are named in the error.
    private static func one<Entity: Identified>(of found: [Entity], _ kind: String, _ text: String) throws -> Entity {
        guard let first = found.first else {
            throw CommandFailure(
                message: "there is no \(kind) \"\(text)\"; `safelight \(kind) list` shows those there are",
                name: "identifier_not_found"
            )
        }
        guard found.count == 1 else {
            throw CommandFailure(
                message: "more than one \(kind) is called \"\(text)\"; name it by its identifier: "
                    + found.map(\.id.text).joined(separator: ", "),
                name: "multiple_identifiers"
            )
        }
        return first
    }

    private static func folders(_ text: String, in library: PhotoLibrary) async throws -> [CollectionList] {
        var fetch = FetchDescription(.lists)
        if let id = ObjectID(text), id.kind == .collectionList {
            fetch.ids = [id]
        } else {
            fetch.collectionType = ListType.folder.rawValue
            fetch.predicate = ["key": "title", "op": "==", "value": .string(text)]
        }
        return try await library.lists(fetch, count: 10).lists
    }

    /// The first few albums with a title.
    static func titled(_ title: String, in library: PhotoLibrary) async throws -> [AssetCollection] {
        let predicate = try Predicate(format: "title == %@", arguments: [.string(title)], of: .assetCollection)
        let fetch = try Fetch(.collections(type: .album, subtype: nil), predicate: predicate)
        return try await library.collections(fetch.wireForm, count: 10).collections
    }
}

/// What an identifier names.
private protocol Identified {
    var id: ObjectID { get }
}

extension AssetCollection: Identified {}
extension CollectionList: Identified {}

/// `--in`: where something new is put.
struct FolderOption: ParsableArguments {
    @Option(name: .customLong("in"), help: ArgumentHelp("The folder it stands in.", valueName: "id|title"))
    var folder: String?

    /// The folder; nil for the root.
    func reference(in library: PhotoLibrary) async throws -> ObjectReference? {
        guard let folder else { return nil }
        return .id(try await Albums.folder(folder, in: library).id)
    }
}

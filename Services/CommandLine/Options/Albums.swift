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
        let albums = try await titled(text, in: library)
        guard let album = albums.first else {
            throw CommandFailure(
                message: "there is no album \"\(text)\"; `safelight album list` shows those there are",
                name: "identifier_not_found"
            )
        }
        guard albums.count == 1 else {
            throw CommandFailure(
                message: "more than one album is called \"\(text)\"; name it by its identifier: "
                    + albums.map(\.id.text).joined(separator: ", "),
                name: "multiple_identifiers"
            )
        }
        return album
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
        let folders = try await folders(text, in: library)
        guard let folder = folders.first else {
            throw CommandFailure(
                message: "there is no folder \"\(text)\"; `safelight folder list` shows those there are",
                name: "identifier_not_found"
            )
        }
        guard folders.count == 1 else {
            throw CommandFailure(
                message: "more than one folder is called \"\(text)\"; name it by its identifier: "
                    + folders.map(\.id.text).joined(separator: ", "),
                name: "multiple_identifiers"
            )
        }
        return folder
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

import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Random fetches of a library, and random transactions that change its assets and how they are organized.
struct RandomWorkload {
    private let library: PhotoLibrary
    private var assets: [ObjectID] = []
    private var albums: [ObjectID] = []
    private var folders: [ObjectID] = []
    private var trashed: [ObjectID] = []
    /// Collections whose members are derived: smart albums and moments contain assets, lists of moments contain
    /// moments.
    private let derived: [ObjectID]
    private let momentLists: [ObjectID]
    /// The number of refused transactions, by error name.
    private(set) var refused: [String: Int] = [:]

    /// - Parameter library: a library with hundreds of assets and some albums
    init(_ library: PhotoLibrary) async throws {
        self.library = library
        for try await asset in library.allAssets(FetchDescription(.assets)) { assets.append(asset.id) }
        let collections = try await library.collections(FetchDescription(.collections), count: 1000).collections
        albums = collections.filter { $0.type == .album }.map(\.id)
        derived = collections.filter { $0.type != .album }.map(\.id)
        let lists = try await library.lists(FetchDescription(.lists), count: 1000).lists
        folders = lists.filter { $0.type == .folder }.map(\.id)
        momentLists = lists.filter { $0.type == .momentList }.map(\.id)
        #expect(assets.count > 300 && albums.count >= 6 && derived.count > 20 && !momentLists.isEmpty)
        // Fetches refer to these; later some are renamed, moved and deleted.
        for number in 0..<4 {
            let parent = folders.isEmpty || number < 2 ? nil : ObjectReference.id(folders[0])
            let done = try await library.perform([
                .createList(.init(ref: "f", title: Self.titles[number], parent: parent)),
                .createCollection(.init(ref: "a", title: Self.titles[number], parent: .placeholder("f"))),
            ])
            if let folder = done.id("f"), let album = done.id("a") {
                folders.append(folder)
                albums.append(album)
            }
        }
    }

    static let words = ["sea", "hill", "wood"]
    private static let titles = ["Alps", "alps", "Sea", "Été", "Wood 7", "Z", "Paris"]

    // MARK: Fetches

    func fetch(_ random: inout SeededRandom) -> FetchDescription {
        var fetch: FetchDescription
        switch Int.random(in: 0..<10, using: &random) {
        case 0: fetch = collections(&random)
        case 1: fetch = lists(&random)
        case 2, 3: fetch = children(&random)
        default: fetch = assetFetch(&random)
        }
        if Bool.random(using: &random) { fetch.limit = Int.random(in: 1...30, using: &random) }
        if random.one(in: 3) { fetch.offset = Int.random(in: 1...15, using: &random) }
        return fetch
    }

    private func assetFetch(_ random: inout SeededRandom) -> FetchDescription {
        var fetch = FetchDescription(.assets)
        switch Int.random(in: 0..<9, using: &random) {
        case 0: fetch.ids = (0..<8).map { _ in random.pick(assets) }
        case 1, 2: fetch.container = random.pick(albums)
        case 3, 4: fetch.container = random.pick(derived)
        case 5: fetch.container = random.pick(folders)
        case 6: fetch.container = random.one(in: 2) ? .root : random.pick(folders + momentLists)
        default: break
        }
        switch Int.random(in: 0..<6, using: &random) {
        case 0: break
        case 1: fetch.predicate = "isFavorite == TRUE"
        case 2: fetch.predicate = .string("rating >= \(Int.random(in: 1...4, using: &random))")
        case 3: fetch.predicate = .string("ANY keywords == \"\(random.pick(Self.words))\"")
        case 4: fetch.predicate = .string("rating == \(Int.random(in: 0...5, using: &random)) OR caption != nil")
        default:
            fetch.predicate = RandomEntities.tree(Int.random(in: 1...4, using: &random), of: .asset, using: &random)
        }
        sort(&fetch, EntityClass.asset.keys, [.rating, .isFavorite, .caption, .creationDate], &random)
        if random.one(in: 4) { fetch.includeHidden = true }
        if random.one(in: 6) { fetch.inTrash = true }
        return fetch
    }

    private func collections(_ random: inout SeededRandom) -> FetchDescription {
        var fetch = FetchDescription(.collections)
        switch Int.random(in: 0..<7, using: &random) {
        case 4, 5: fetch.containing = random.pick(assets)
        case 0: fetch.ids = (0..<8).map { _ in random.pick(albums + derived) }
        case 1: fetch.collectionType = CollectionType.album.rawValue
        case 2: fetch.collectionType = CollectionType.moment.rawValue
        case 3: fetch.collectionType = CollectionType.smartAlbum.rawValue
        default: break
        }
        arrange(&fetch, .assetCollection, &random)
        return fetch
    }

    private func lists(_ random: inout SeededRandom) -> FetchDescription {
        var fetch = FetchDescription(.lists)
        switch Int.random(in: 0..<7, using: &random) {
        case 4, 5: fetch.containing = random.pick(albums + folders + derived)
        case 0: fetch.ids = (0..<6).map { _ in random.pick(folders + momentLists) }
        case 1: fetch.collectionType = ListType.folder.rawValue
        case 2: fetch.collectionType = ListType.momentList.rawValue
        case 3:
            fetch.collectionType = ListType.momentList.rawValue
            fetch.collectionSubtype = ListSubtype.momentListYear.rawValue
        default: break
        }
        arrange(&fetch, .collectionList, &random)
        return fetch
    }

    private func children(_ random: inout SeededRandom) -> FetchDescription {
        var fetch = FetchDescription(.children)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: break
        case 1: fetch.container = random.pick(momentLists)
        default: fetch.container = random.pick(folders)
        }
        arrange(&fetch, .collection, &random)
        return fetch
    }

    private func arrange(_ fetch: inout FetchDescription, _ kind: EntityClass, _ random: inout SeededRandom) {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: fetch.predicate = .string("title BEGINSWITH[cd] \"\(random.pick(Self.titles).prefix(2))\"")
        case 1 where kind == .assetCollection:
            fetch.predicate = .string("estimatedAssetCount > \(Int.random(in: 0...30, using: &random))")
        case 2: fetch.predicate = RandomEntities.tree(Int.random(in: 1...3, using: &random), of: kind, using: &random)
        default: break
        }
        sort(&fetch, kind.keys, [.title, .startDate, .endDate], &random)
    }

    private func sort(
        _ fetch: inout FetchDescription,
        _ keys: [PredicateKey],
        _ often: [PredicateKey],
        _ random: inout SeededRandom
    ) {
        for _ in 0..<Int.random(in: 0...2, using: &random) {
            let key = random.pick(keys.filter(\.isSortable) + often)
            fetch.sort.append(SortDescription(key: key.name, ascending: Bool.random(using: &random)))
        }
    }

    /// Returns the result as the catalog computes it currently, and its token.
    static func fresh(_ fetch: FetchDescription, _ library: PhotoLibrary) async throws -> ([ObjectID], ChangeToken) {
        do throws(RPCError) {
            switch fetch.kind {
            case .assets:
                let page = try await library.assets(fetch, count: 1000)
                return (page.assets.map(\.id), page.token)
            case .collections:
                let page = try await library.collections(fetch, count: 1000)
                return (page.collections.map(\.id), page.token)
            case .children:
                let page = try await library.collections(fetch, count: 1000)
                return (page.order, page.token)
            case .lists:
                let page = try await library.lists(fetch, count: 1000)
                return (page.lists.map(\.id), page.token)
            }
        } catch {
            guard error.errorCode == .identifierNotFound else { throw error }
            // The collection was deleted, as a moment is with its last asset: the fetch is empty.
            return ([], try await library.currentToken().token)
        }
    }

    // MARK: Transactions

    /// Performs one random transaction.
    ///
    /// - Returns: the token after it
    mutating func perform(_ random: inout SeededRandom) async throws -> ChangeToken {
        let requests: [ChangeRequest]
        switch Int.random(in: 0..<10, using: &random) {
        case 0: requests = [try await makeArrangement(&random)]
        case 1: requests = makeCreation(&random)
        case 2 where random.one(in: 3): requests = makeDeletion(&random)
        default: requests = (0..<(random.one(in: 4) ? 6 : 1)).map { _ in makeChange(&random) }
        }
        do throws(RPCError) {
            let done = try await library.perform(requests)
            if let album = done.id("album") { albums.append(album) }
            if let folder = done.id("folder") { folders.append(folder) }
            return done.token
        } catch {
            // A request deletes an object that another one changes; a chosen object was deleted; a folder would contain
            // itself; or an object at the top level is removed from its folder.
            let expected: [ErrorCode] = [.identifierNotFound, .cycle, .changeNotSupported]
            guard error.errorCode.map(expected.contains) == true else { throw error }
            refused[error.name, default: 0] += 1
            return try await library.currentToken().token
        }
    }

    private mutating func makeChange(_ random: inout SeededRandom) -> ChangeRequest {
        let id = random.pick(assets)
        var patch = AssetPatch()
        switch Int.random(in: 0..<15, using: &random) {
        case 0, 1: patch.isFavorite = Bool.random(using: &random)
        case 2, 3: patch.rating = Int.random(in: 0...5, using: &random)
        case 4: patch.isHidden = Bool.random(using: &random)
        case 5: patch.caption = .some(random.one(in: 3) ? nil : random.pick(RandomEntities.texts))
        case 6: patch.keywords = Self.words.filter { _ in Bool.random(using: &random) }
        case 7: patch.creationDate = .some(1_600_000_000_000_000 + Int64.random(in: 0...9, using: &random))
        case 8:
            // Another day and location: moments appear and disappear, and with them clusters and years.
            let day = Int64.random(in: 0...400, using: &random)
            patch.creationDate = .some(random.one(in: 5) ? nil : 1_600_000_000_000_000 + day * 86_400_000_000)
        case 9:
            let degree = Double(Int.random(in: 0...30, using: &random))
            patch.location = .some(random.one(in: 4) ? nil : Location(latitude: degree, longitude: degree))
        case 10, 11:
            return .updateCollection(.init(id: .id(random.pick(albums)), add: [.id(id), .id(random.pick(assets))]))
        case 12: return .updateCollection(.init(id: .id(random.pick(albums)), remove: [id, random.pick(assets)]))
        case 13:
            if let back = trashed.popLast(), Bool.random(using: &random) { return .restoreAssets(.init(ids: [back])) }
            trashed.append(id)
            return .trashAssets(.init(ids: [id]))
        default:
            guard assets.count > 200, random.one(in: 3) else { break }
            assets.removeAll { $0 == id }
            trashed.removeAll { $0 == id }
            return .deleteAssets(.init(ids: [id]))
        }
        return .updateAsset(.init(id: .id(id), set: patch))
    }

    /// Returns a rename or move of an album or folder, or a new order of its content.
    private func makeArrangement(_ random: inout SeededRandom) async throws -> ChangeRequest {
        let title = Bool.random(using: &random) ? random.pick(Self.titles) : nil
        let (album, folder) = (random.pick(albums), random.pick(folders))
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .updateCollection(.init(id: .id(album), title: random.pick(Self.titles)))
        case 1: return .updateList(.init(id: .id(folder), title: random.pick(Self.titles)))
        case 2:
            let child = random.pick(albums + folders)
            return .updateList(.init(id: .id(folder), title: title, edits: [.add([.id(child)])]))
        case 3:
            return .updateList(.init(id: .id(folder), title: title, edits: [.remove([random.pick(albums + folders)])]))
        case 4:
            var fetch = FetchDescription(.assets)
            fetch.container = album
            let (members, token) = try await Self.fresh(fetch, library)
            guard let edit = Self.makeMove(members, &random) else { break }
            return .updateCollection(.init(id: .id(album), title: title, edits: [edit], snapshot: token))
        default:
            var fetch = FetchDescription(.children)
            let list = random.one(in: 3) ? ObjectID.root : folder
            fetch.container = list
            let (members, token) = try await Self.fresh(fetch, library)
            guard let edit = Self.makeMove(members, &random) else { break }
            return .updateList(.init(id: .id(list), edits: [edit], snapshot: token))
        }
        return .updateList(.init(id: .id(folder), edits: [.add([.id(album)])]))
    }

    private static func makeMove(_ members: [ObjectID], _ random: inout SeededRandom) -> MemberEdit? {
        guard members.count > 1 else { return nil }
        let from = Array(Set([random.pick(Array(members.indices)), random.pick(Array(members.indices))])).sorted()
        return .move(from: from, to: Int.random(in: 0...members.count - from.count, using: &random))
    }

    private mutating func makeCreation(_ random: inout SeededRandom) -> [ChangeRequest] {
        let title = random.pick(Self.titles)
        let parent = random.one(in: 3) ? nil : ObjectReference.id(random.pick(folders))
        let members = (0..<3).map { _ in ObjectReference.id(random.pick(assets)) }
        switch Int.random(in: 0..<3, using: &random) {
        case 0: return [.createCollection(.init(ref: "album", title: title, add: members, parent: parent))]
        case 1: return [.createList(.init(ref: "folder", title: title, parent: parent))]
        default:
            return [
                .createList(.init(ref: "folder", title: title, parent: parent, add: [.id(random.pick(albums))])),
                .createCollection(.init(ref: "album", title: title, add: members, parent: .placeholder("folder"))),
            ]
        }
    }

    private mutating func makeDeletion(_ random: inout SeededRandom) -> [ChangeRequest] {
        if Bool.random(using: &random), albums.count > 6 {
            let album = random.pick(albums)
            albums.removeAll { $0 == album }
            return [.deleteCollections(.init(ids: [album]))]
        }
        let folder = random.pick(folders)
        // Deleting a folder deletes everything below it: later changes of those objects are refused, and fetches of
        // their content are empty.
        if folders.count > 3 { folders.removeAll { $0 == folder } }
        return [.deleteLists(.init(ids: [folder]))]
    }
}

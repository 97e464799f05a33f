import JSONValue
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct FetchTests {
    private let album = RandomEntities.id(.assetCollection, 1)
    private let folder = RandomEntities.id(.collectionList, 1)

    private func asset(_ number: Int, _ change: (inout Asset) -> Void = { _ in }) -> Asset {
        var asset = Asset(id: RandomEntities.id(.asset, number))
        asset.mediaType = .image
        asset.addedDate = Int64(number)
        change(&asset)
        return asset
    }

    private func key(_ text: String) throws -> OrderKey { try #require(OrderKey(text)) }

    @Test func `default options depend on the kind of fetch`() throws {
        let plain = asset(1)
        let hidden = asset(2) { $0.isHidden = true }
        let frame = asset(3) { $0.burstIdentifier = "b" }
        let pick = asset(4) {
            $0.burstIdentifier = "b"
            $0.burstSelectionTypes = .userPick
        }
        let autoPick = asset(5) {
            $0.burstIdentifier = "b"
            $0.burstSelectionTypes = .autoPick
        }
        let representative = asset(6) {
            $0.burstIdentifier = "b"
            $0.representsBurst = true
        }
        let shared = asset(7) { $0.sourceType = .typeCloudShared }
        let trashed = asset(8) { $0.trashedDate = 1 }
        var all = [plain, hidden, frame, pick, autoPick, representative, shared, trashed]
        let key = try key("V")
        for index in all.indices { all[index].memberships = [Membership(collection: album, key: key)] }

        func numbers(_ fetch: Fetch) -> [Int64] { all.filter { fetch.includes($0) }.map(\.addedDate) }
        let ids = IDList(all.map(\.id))
        #expect(try numbers(Fetch(.assets(.library))) == [1, 4, 6])
        #expect(try numbers(Fetch(.assets(.library), includeHidden: true)) == [1, 2, 4, 6])
        #expect(try numbers(Fetch(.assets(.library), includeAllBurstAssets: true)) == [1, 3, 4, 5, 6])
        #expect(try numbers(Fetch(.assets(.library), sourceTypes: .cloudShared)) == [7])
        #expect(try numbers(Fetch(.assets(.library), sourceTypes: [])) == [1, 4, 6])
        #expect(try numbers(Fetch(.assets(.library), mediaType: .video)) == [])
        #expect(try numbers(Fetch(.assets(.ids(ids)))) == [1, 2, 3, 4, 5, 6, 7])
        #expect(try numbers(Fetch(.assets(.ids(ids)), includeHidden: false)) == [1, 3, 4, 5, 6, 7])
        #expect(try numbers(Fetch(.assets(.collection(album)))) == [1, 4, 6, 7])
        #expect(try numbers(Fetch(.assets(.burst("b")))) == [3, 4, 5, 6])
        #expect(try numbers(Fetch(.assets(.burst("b")), includeAllBurstAssets: false)) == [4, 6])
        #expect(try numbers(Fetch(.assets(.burst("c")))) == [])
        let predicate = try Predicate(format: "burstIdentifier == nil", of: .asset)
        #expect(try numbers(Fetch(.assets(.collection(album)), predicate: predicate)) == [1, 7])
        for index in all.indices { all[index].trashedDate = 1 }
        #expect(try numbers(Fetch(.assets(.library), inTrash: true)) == [1, 3, 4, 5, 6, 8])
        #expect(try numbers(Fetch(.assets(.library), includeAllBurstAssets: false, inTrash: true)) == [1, 4, 6, 8])
    }

    @Test func `each kind has a default order`() throws {
        let first = asset(1) {
            $0.addedDate = 9
            $0.memberships = [Membership(collection: album, key: OrderKey.after(nil))]
        }
        let second = asset(2) {
            $0.memberships = [Membership(collection: album, key: OrderKey.after(first.memberships[0].key))]
        }
        #expect(try Fetch(.assets(.library)).areInIncreasingOrder(second, first))
        #expect(try Fetch(.assets(.collection(album))).areInIncreasingOrder(first, second))
        let ids = IDList([second.id, first.id, second.id])
        #expect(ids.ids == [second.id, first.id])
        #expect(try Fetch(.assets(.ids(ids))).areInIncreasingOrder(second, first))
        let byID = asset(3) { $0.addedDate = 9 }
        #expect(try Fetch(.assets(.library)).areInIncreasingOrder(first, byID) == (first.id < byID.id))
    }

    @Test(arguments: EntityClass.asset.keys.filter(\.isSortable))
    func `every sort key gives a total order with missing values last`(key: PredicateKey) throws {
        var random = SeededRandom(named: "sort by \(key.name)")
        for ascending in [true, false] {
            let sort = [try SortDescriptor(key.name, ascending: ascending, of: .asset)]
            let assets = (0..<80).map { RandomEntities.asset($0, using: &random) }
            let sorted = assets.sorted { sort.precedes($0, $1) }
            #expect(sorted == assets.shuffled(using: &random).sorted { sort.precedes($0, $1) })
            #expect(sorted == assets.sorted { !sort.precedes($1, $0) })
            let values = sorted.map { $0.value(of: key) }
            let known = values.prefix { $0 != .null }
            #expect(values.dropFirst(known.count).allSatisfy { $0 == .null })
            for (left, right) in zip(known, known.dropFirst()) {
                #expect((ascending ? right.isBefore(left) : left.isBefore(right)) == false)
            }
        }
    }

    @Test(arguments: ["SELF", "localIdentifier", "keywords", "shoeSize", "startDate", ""])
    func `an unsupported sort key is refused`(name: String) throws {
        let error = try #require(throws: PredicateError.self) { try SortDescriptor(name, of: .asset) }
        #expect(error.name == .unsupportedSortKey)
        #expect(error.key == name)
        #expect(error.allowed.contains("addedDate"))
    }

    @Test func `later sort keys break ties of earlier ones`() throws {
        let sort = [
            try SortDescriptor("rating", ascending: false, of: .asset), try SortDescriptor("caption", of: .asset),
        ]
        let assets = [(1, 3, "b"), (2, 5, "z"), (3, 3, "a"), (4, 3, nil)].map { number, rating, caption in
            asset(number) {
                $0.rating = rating
                $0.caption = caption
            }
        }
        #expect(assets.sorted { sort.precedes($0, $1) }.map(\.addedDate) == [2, 3, 1, 4])
    }

    @Test func `collections and lists are fetched by type and by folder`() throws {
        var album = AssetCollection(id: album)
        album.parent = folder
        album.parentKey = try key("b")
        var sub = CollectionList(id: RandomEntities.id(.collectionList, 2))
        sub.parent = folder
        sub.parentKey = try key("a")
        #expect(try Fetch(.collections(type: .album, subtype: nil)).includes(album))
        #expect(try !Fetch(.collections(type: .smartAlbum, subtype: nil)).includes(album))
        #expect(try !Fetch(.collections(type: .album, subtype: .albumImported)).includes(album))
        #expect(try Fetch(.lists(type: .folder, subtype: .regularFolder)).includes(sub))
        #expect(try !Fetch(.lists(type: .folder, subtype: nil)).includes(album))
        #expect(try Fetch(.collectionIDs(IDList([album.id]))).includes(album))
        let children = try Fetch(.children(of: folder))
        #expect(children.includes(album) && children.includes(sub))
        #expect(children.areInIncreasingOrder(.list(sub), .collection(album)))
        #expect(try !Fetch(.children(of: .root)).includes(album))
    }

    @Test func `equivalent fetches have equal bytes`() throws {
        let spellings = [
            #"{"kind":"assets","predicate":"rating > 3 AND favorite == YES","sort":[{"key":"creationDate"}]}"#,
            #"{"kind":"assets","sort":[{"key":"creationDate","ascending":true}],"limit":0,"includeHidden":false,"predicate":"isFavorite && 3 < rating"}"#,
            #"{"kind":"assets","includeAllBurstAssets":null,"sourceTypes":["typeUserLibrary"],"sort":[{"key":"creationDate"},{"key":"creationDate","ascending":false}],"predicate":{"and":[{"key":"favorite","op":"==","value":1},{"key":"rating","op":">","value":3}]}}"#,
            #"{"kind":"assets","predicate":{"format":"%K > %d AND favorite == %@","arguments":["rating",3,true]},"sort":[{"key":"creationDate"}]}"#,
        ]
        let fetches = try spellings.map { try Fetch(json: JSON(parsing: $0)) }
        for fetch in fetches {
            #expect(fetch == fetches[0])
            #expect(fetch.canonical == fetches[0].canonical)
            #expect(try Fetch(json: JSON(parsing: fetch.canonical)) == fetch)
        }
        #expect(try Fetch(json: ["kind": "assets", "predicate": true]) == Fetch(.assets(.library)))
        #expect(try Fetch(json: ["kind": "assets"]).canonical != Fetch(json: ["kind": "assets", "limit": 1]).canonical)
    }

    @Test(arguments: [
        #"{"kind":"assets"}"#, #"{"kind":"assets","ids":["a00000000000000000000000000"]}"#,
        #"{"kind":"assets","in":"c00000000000000000000000001","limit":3,"offset":2,"mediaType":"video"}"#,
        #"{"kind":"assets","burstIdentifier":"x"}"#, #"{"kind":"collections","type":"album","subtype":"any"}"#,
        #"{"kind":"collections","predicate":"title BEGINSWITH 'x'","sort":[{"key":"localizedTitle"}]}"#,
        #"{"kind":"collections","ids":["c00000000000000000000000001"]}"#,
        #"{"kind":"lists","type":"momentList","subtype":"momentListYear"}"#,
        #"{"kind":"lists","ids":["l00000000000000000000000001"]}"#, #"{"kind":"children"}"#,
        #"{"kind":"children","in":"l00000000000000000000000001","predicate":"title != nil"}"#,
    ])
    func `a fetch of every kind is decoded from its encoded form`(text: String) throws {
        let fetch = try Fetch(json: JSON(parsing: text))
        #expect(try Fetch(json: JSON(parsing: fetch.json.bytes)) == fetch)
        #expect(try Fetch(FetchDescription(json: JSON(parsing: text))) == fetch)
    }

    @Test func `offset and limit of a fetch can be changed, and a predicate of another class is refused`() throws {
        let page = try Fetch(json: ["kind": "assets", "predicate": "rating > 3"]).with(offset: 5, limit: 10)
        #expect(try page == Fetch(json: ["kind": "assets", "predicate": "rating > 3", "offset": 5, "limit": 10]))
        let title = try Predicate(format: "title == 'x'", of: .collection)
        #expect(throws: PredicateError.self) { try Fetch(.assets(.library), predicate: title) }
    }

    @Test(arguments: [
        (#"{"kind":"people"}"#, "invalid_options"),
        (#"{"kind":"assets","limt":1}"#, "invalid_options"), (#"{"kind":"assets","limit":-1}"#, "invalid_options"),
        (#"{"kind":"assets","type":"album"}"#, "invalid_options"),
        (#"{"kind":"assets","containing":"c00000000000000000000000001"}"#, "invalid_options"),
        (#"{"kind":"assets","ids":[],"burstIdentifier":"x"}"#, "invalid_options"),
        (#"{"kind":"assets","ids":["c00000000000000000000000001"]}"#, "invalid_options"),
        (#"{"kind":"collections","type":"folder"}"#, "invalid_options"),
        (#"{"kind":"collections","mediaType":"image"}"#, "invalid_options"),
        (#"{"kind":"collections","in":"l00000000000000000000000001"}"#, "invalid_options"),
        (#"{"kind":"lists","includeHidden":true}"#, "invalid_options"),
        (#"{"kind":"children","ids":[]}"#, "invalid_options"),
        (#"{"kind":"children","in":"c00000000000000000000000001"}"#, "invalid_options"),
        (#"{"kind":"collections","predicate":"rating > 1"}"#, "unsupported_predicate"),
        (#"{"kind":"assets","predicate":"rating >"}"#, "invalid_predicate"),
        (#"{"kind":"assets","sort":[{"key":"SELF"}]}"#, "unsupported_sort_key"),
        (#"{"kind":"children","sort":[{"key":"estimatedAssetCount"}]}"#, "unsupported_sort_key"),
    ])
    func `an invalid fetch is refused with the name of the error`(text: String, name: String) throws {
        let json = try JSON(parsing: text)
        let error = try #require(throws: PredicateError.self) { try Fetch(json: json) }
        #expect(error.name.rawValue == name, "\(error)")
    }
}

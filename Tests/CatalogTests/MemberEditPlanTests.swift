import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of steps on ordered members, with the specification's test vectors, and of folders.
@Suite(.timeLimit(.minutes(5)))
struct MemberEditPlanTests {
    /// An album of assets that are named by letters.
    private struct Album {
        var library = InMemoryLibrary()
        var names: [Character: ObjectID] = [:]
        var id: ObjectID

        init(_ members: String, others: String = "") throws {
            for (number, letter) in (members + others).enumerated() { names[letter] = try library.add(number + 1) }
            let names = names
            id = try library.addAlbum("A", members.compactMap { names[$0] })
        }

        var text: String {
            String(library.members(of: id, limit: 1000).map { id in names.first { $0.value == id }?.key ?? "?" })
        }

        func ids(_ letters: String) -> [ObjectID] { letters.compactMap { names[$0] } }
        func members(_ letters: String) -> [ObjectReference] { ids(letters).map { .id($0) } }

        /// Performs steps as a client that saw a given list.
        @discardableResult
        mutating func edit(_ seen: String?, _ edits: MemberEdit...) throws -> ChangeRecord {
            let change = PreparedChange(
                .updateCollection(.init(id: .id(id), edits: edits)),
                snapshot: seen.map { SnapshotList(ids($0)) }
            )
            return try library.perform([change]).0
        }
    }

    @Test(.spec("T-14")) func `members are inserted at their final indexes`() throws {
        var album = try Album("abc", others: "xy")
        try album.edit("abc", .insert(album.members("xy"), at: [1, 3]))
        #expect(album.text == "axbyc")
        try album.edit("axbyc", .insert(album.members("cxa"), at: [0, 2, 4]))
        #expect(album.text == "cbxya")
        let error = #expect(throws: RPCError.self) {
            try album.edit("cbxya", .insert(album.members("xa"), at: [1, 5]))
        }
        #expect(error?.name == "range_error" && error?.data["count"] == 4 && album.text == "cbxya")
        let wire: JSON = ["op": "insert", "members": [.string(album.ids("x")[0].text)], "at": [1, 2]]
        let problem = #expect(throws: JSONProblem.self) {
            try ChangeRequest.UpdateCollection(json: ["id": .string(album.id.text), "edits": [wire]])
        }
        #expect(problem?.description.contains("one for each") == true)
    }

    @Test(.spec("T-15")) func `members are moved to an index of the remaining list`() throws {
        var album = try Album("abcde")
        let record = try album.edit("abcde", .move(from: [0, 1], to: 2))
        #expect(album.text == "cdabe")
        // Moving two members changes two assets.
        #expect(record.assets.count == 2 && record.collections.count == 1)
    }

    @Test(.spec("T-16")) func `a member is replaced, and a replacement that is already a member moves`() throws {
        var album = try Album("abc", others: "x")
        try album.edit("abc", .replace(at: [0], with: album.members("c")))
        #expect(album.text == "cb")
        try album.edit("cb", .replace(at: [1], with: album.members("x")))
        #expect(album.text == "cx")
        try album.edit("cx", .removeAt([0]))
        #expect(album.text == "x")
    }

    @Test(.spec("T-13", "S-84", "S-74"))
    func `indexes are applied to a list that other clients changed since the snapshot`() throws {
        var album = try Album("abc", others: "d")
        try album.edit(nil, .remove(album.ids("a")))
        try album.edit("abc", .move(from: [2], to: 0))
        #expect(album.text == "cb")
        try album.edit(nil, .add(album.members("da")))
        // The preceding member that the client saw was removed, so the member before it is used.
        try album.edit("abc", .move(from: [0], to: 2))
        #expect(album.text == "cabd")
        let error = #expect(throws: RPCError.self) { try album.edit(nil, .removeAt([0])) }
        #expect(error?.name == "snapshot_required")
        let range = #expect(throws: RPCError.self) { try album.edit("cabd", .removeAt([4])) }
        #expect(range?.name == "range_error")
        #expect(album.text == "cabd")
    }

    @Test(.spec("T-13", "T-15")) func `a member that another client has removed is not moved`() throws {
        var album = try Album("abcd", others: "x")
        try album.edit(nil, .remove(album.ids("b")))
        try album.edit("abcd", .move(from: [1, 2], to: 0))
        #expect(album.text == "cad")
        // A member that an earlier step of the request has inserted is moved.
        try album.edit("cad", .insert(album.members("x"), at: [1]), .move(from: [1], to: 3))
        #expect(album.text == "cadx")
    }

    @Test(.spec("S-84", "T-13"))
    func `indexes in a list that the same transaction created refer to its current members`() throws {
        var library = InMemoryLibrary()
        let ids = try (1...4).map { try library.add($0) }
        let members = ids.map { ObjectReference.id($0) }
        let (_, placeholders) = try library.perform([
            PreparedChange(.createCollection(.init(ref: "c", title: "A", add: Array(members[0...2])))),
            PreparedChange(
                .updateCollection(
                    .init(id: .placeholder("c"), edits: [.move(from: [0], to: 2), .insert([members[3]], at: [1])])
                )
            ),
            PreparedChange(.createList(.init(ref: "f", title: "F"))),
            PreparedChange(.createList(.init(ref: "g", title: "G", parent: .placeholder("f")))),
            PreparedChange(.createCollection(.init(ref: "d", title: "B", parent: .placeholder("f")))),
            PreparedChange(.updateList(.init(id: .placeholder("f"), edits: [.move(from: [0], to: 1)]))),
        ])
        let id = { (name: String) in try #require(placeholders[name]) }
        #expect(library.members(of: try id("c"), limit: 9) == [ids[1], ids[3], ids[2], ids[0]])
        #expect(library.children(of: try id("f")).map(\.id) == [try id("d"), try id("g")])
    }

    @Test(.spec("S-84")) func `each step of a request sees the result of the earlier ones`() throws {
        var album = try Album("abcd", others: "x")
        try album.edit(
            "abcd",
            .move(from: [3], to: 0),
            .insert(album.members("x"), at: [1]),
            .removeAt([2]),
            .replace(at: [0], with: album.members("b"))
        )
        // dabc, dxabc, dxbc, bxc
        #expect(album.text == "bxc")
    }

    @Test(.spec("S-81", "S-82"))
    func `members are appended once each, and removing assets that are not members has no effect`() throws {
        var album = try Album("ab", others: "xy")
        try album.edit(nil, .add(album.members("xaxy")), .remove(album.ids("b")), .remove(album.ids("b")))
        #expect(album.text == "axy")
    }

    @Test(.spec("S-84"), arguments: [1, 2, 3, 4])
    func `steps on the current list behave like array operations`(_ round: UInt64) throws {
        var random = SeededRandom(named: "member steps \(round)")
        let letters = Array("abcdefghijklmnop")
        var album = try Album(String(letters.prefix(8)), others: String(letters.dropFirst(8)))
        for _ in 0..<TestEnvironment.rounds(60) {
            let seen = album.text
            var list = Array(seen)
            func indexes(_ limit: Int, _ count: Int) -> [Int] {
                Array((0..<limit).shuffled(using: &random).prefix(count)).sorted()
            }
            let others = letters.filter { !list.contains($0) }.shuffled(using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                let new = Array(others.prefix(2))
                let at = indexes(list.count + new.count, new.count)
                for (letter, index) in zip(new, at) { list.insert(letter, at: min(index, list.count)) }
                guard zip(at, 0...).allSatisfy({ $0 <= seen.count + $1 }) else { continue }
                try album.edit(seen, .insert(album.members(String(new)), at: at))
            case 1:
                let from = indexes(list.count, min(3, list.count))
                let moved = from.map { list[$0] }
                list.removeAll(where: moved.contains)
                let to = Int.random(in: 0...list.count, using: &random)
                list.insert(contentsOf: moved, at: to)
                try album.edit(seen, .move(from: from, to: to))
            case 2 where list.count > 3:
                let at = indexes(list.count, 2)
                for index in at.reversed() { list.remove(at: index) }
                try album.edit(seen, .removeAt(at))
            default:
                guard let letter = others.first, !list.isEmpty else { continue }
                let index = Int.random(in: list.indices, using: &random)
                list[index] = letter
                try album.edit(seen, .replace(at: [index], with: album.members(String(letter))))
            }
            try #require(album.text == String(list))
        }
    }

    // MARK: Folders

    @Test(.spec("S-06", "S-04")) func `folders can be in folders, but not in themselves`() throws {
        var library = InMemoryLibrary()
        var ids: [ObjectID] = []
        for depth in 0..<5 {
            let (_, placeholders) = try library.perform([
                PreparedChange(
                    .createList(.init(ref: "f", title: "\(depth)", parent: ids.last.map { .id($0) }))
                )
            ])
            ids.append(try #require(placeholders["f"]))
        }
        #expect(ids.dropFirst().map { library.list($0)?.parent } == ids.dropLast().map { $0 })
        for folder in [ids[0], ids[4]] {
            let error = #expect(throws: RPCError.self) {
                try library.perform(.updateList(.init(id: .id(folder), edits: [.add([.id(ids[0])])])))
            }
            #expect(error?.name == "cycle")
        }
        // Adding a child to a second parent removes it from the first.
        try library.perform(.updateList(.init(id: .id(ids[0]), edits: [.add([.id(ids[4])])])))
        #expect(library.list(ids[4])?.parent == ids[0] && library.list(ids[3])?.childCount == 0)
        #expect(library.list(ids[0])?.childCount == 2)
    }

    @Test(.spec("S-80")) func `deleting a folder deletes its albums, and the assets stay`() throws {
        var library = InMemoryLibrary()
        let asset = try library.add(1)
        let (_, placeholders) = try library.perform([
            PreparedChange(.createList(.init(ref: "outer", title: "Outer"))),
            PreparedChange(.createList(.init(ref: "inner", title: "Inner", parent: .placeholder("outer")))),
            PreparedChange(
                .createCollection(.init(ref: "c", title: "C", add: [.id(asset)], parent: .placeholder("inner")))
            ),
        ])
        let outer = try #require(placeholders["outer"])
        try library.perform(.deleteLists(.init(ids: [outer])))
        #expect(library.snapshot.lists.keys.map { $0 } == [.root] && library.snapshot.collections.isEmpty)
        #expect(library.asset(asset)?.memberships.isEmpty == true && library.list(.root)?.childCount == 0)
    }

    @Test func `deleting a folder queries each of its children once`() throws {
        var library = InMemoryLibrary()
        let (_, placeholders) = try library.perform([PreparedChange(.createList(.init(ref: "f", title: "F")))])
        let folder = try #require(placeholders["f"])
        try library.perform(
            (0..<100).map { PreparedChange(.createCollection(.init(title: "\($0)", parent: .id(folder)))) }
        )
        let before = library.childQueries.value
        try library.perform(.deleteLists(.init(ids: [folder])))
        #expect(library.snapshot.collections.isEmpty && library.childQueries.value - before == 101)
    }

    @Test(.spec("S-80")) func `objects are deleted in any order, and an identifier may be repeated`() throws {
        for isReversed in [false, true] {
            var library = InMemoryLibrary()
            let asset = try library.add(1)
            let (_, placeholders) = try library.perform([
                PreparedChange(.createList(.init(ref: "outer", title: "Outer"))),
                PreparedChange(.createList(.init(ref: "inner", title: "Inner", parent: .placeholder("outer")))),
                PreparedChange(.createCollection(.init(ref: "c", title: "C"))),
            ])
            let folders = try ["outer", "inner"].map { try #require(placeholders[$0]) }
            let album = try #require(placeholders["c"])
            try library.perform(
                .deleteLists(.init(ids: isReversed ? folders.reversed() : folders)),
                .deleteCollections(.init(ids: [album, album])),
                .deleteAssets(.init(ids: [asset, asset]))
            )
            #expect(library.snapshot.lists.keys.map { $0 } == [.root] && library.snapshot.collections.isEmpty)
            #expect(library.asset(asset) == nil)
        }
    }

    @Test(.spec("T-25", "T-24", "T-12", "S-18"))
    func `children are rearranged by index, and the root folder cannot be renamed`()
        throws
    {
        var library = InMemoryLibrary()
        var ids: [ObjectID] = []
        for number in 0..<4 { ids.append(try library.addAlbum("\(number)")) }
        let (_, placeholders) = try library.perform([PreparedChange(.createList(.init(ref: "f", title: "F")))])
        ids.append(try #require(placeholders["f"]))
        func edit(_ list: ObjectID, _ edits: MemberEdit...) throws {
            let seen = SnapshotList(library.children(of: list).map(\.id))
            try library.perform([PreparedChange(.updateList(.init(id: .id(list), edits: edits)), snapshot: seen)])
        }
        try edit(.root, .move(from: [4], to: 0))
        #expect(library.children(of: .root).map(\.id) == [ids[4], ids[0], ids[1], ids[2], ids[3]])
        try edit(ids[4], .insert([.id(ids[2]), .id(ids[0])], at: [0, 1]))
        #expect(library.children(of: .root).map(\.id) == [ids[4], ids[1], ids[3]])
        #expect(library.children(of: ids[4]).map(\.id) == [ids[2], ids[0]] && library.list(.root)?.childCount == 3)
        try edit(ids[4], .removeAt([0]))
        #expect(library.children(of: .root).map(\.id) == [ids[4], ids[1], ids[3], ids[2]])
        for request in [
            ChangeRequest.updateList(.init(id: .id(.root), title: "Mine")), .deleteLists(.init(ids: [.root])),
        ] {
            let error = #expect(throws: RPCError.self) { try library.perform(request) }
            #expect(error?.name == "change_not_supported")
        }
    }
}

import JSONValue
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct PredicateEvaluationTests {
    @Test(arguments: EntityClass.asset.keys)
    func `every operator of a key agrees with a naive evaluation`(key: PredicateKey) throws {
        var random = SeededRandom(named: "operators of \(key.name)")
        let assets = (0..<60).map { RandomEntities.asset($0, using: &random) }
        for _ in 0..<TestEnvironment.rounds(60) {
            let tree = RandomEntities.condition(key, using: &random)
            let predicate = try Predicate(json: tree, of: .asset)
            let wrong = assets.first { predicate.evaluate($0) != NaivePredicate.evaluate(tree, on: $0) }
            #expect(wrong == nil, "\(tree)")
        }
    }

    @Test func `whole trees agree with a naive evaluation, before and after encoding`() throws {
        var random = SeededRandom(named: "trees")
        let assets = (0..<40).map { RandomEntities.asset($0, using: &random) }
        var passed = 0
        for _ in 0..<TestEnvironment.rounds(400) {
            let tree = RandomEntities.tree(Int.random(in: 1...12, using: &random), of: .asset, using: &random)
            let predicate = try Predicate(json: tree, of: .asset)
            let again = try Predicate(json: JSON(parsing: predicate.json.bytes), of: .asset)
            #expect(again == predicate)
            #expect(again.json.bytes == predicate.json.bytes)
            let answers = assets.map { predicate.evaluate($0) }
            passed += answers.count(where: { $0 })
            let wrong = assets.indices.first { answers[$0] != NaivePredicate.evaluate(tree, on: assets[$0]) }
            #expect(wrong == nil, "\(tree.text) \(wrong.map { assets[$0].json.text } ?? "")")
        }
        #expect(passed > 0)
    }

    @Test func `a text is folded once for all tests of a predicate`() throws {
        var asset = Asset(id: .none)
        asset.caption = String(repeating: "\u{C9}", count: 1 << 15)
        func time(_ tests: Int) throws -> Duration {
            let text = (0..<tests).map { "caption BEGINSWITH[c] 'x\($0)'" }.joined(separator: " OR ")
            let predicate = try Predicate(format: text, of: .asset)
            return ContinuousClock().measure { #expect(!predicate.evaluate(asset)) }
        }
        let single = try time(1)
        #expect(try time(200) < single * 20)
    }

    @Test func `a long list of texts is compared with many texts of an asset`() throws {
        var asset = Asset(id: .none)
        asset.keywords = (0..<200).map { String(repeating: "\u{E9}", count: 50) + "\($0)" }
        func isFound(_ last: String) throws -> Bool {
            let words = (200..<700).map { JSON.string(String(repeating: "\u{E9}", count: 50) + "\($0)") }
            let tree: JSON = ["any": "keywords", "op": "in", "value": .array(words + [.string(last)])]
            return try Predicate(json: tree, of: .asset).evaluate(asset)
        }
        #expect(try isFound(asset.keywords[199]))
        #expect(try isFound(String(repeating: "e\u{301}", count: 50) + "7"), "as in normal form C")
        #expect(try !isFound("no"))
    }

    @Test func `nil equals only nil`() throws {
        let bare = Asset(id: RandomEntities.id(.asset, 1))
        var dated = bare
        dated.creationDate = 5
        dated.caption = "x"
        let cases: [(String, Bool, Bool)] = [
            ("creationDate == nil", true, false), ("creationDate != nil", false, true),
            ("creationDate == 5", false, true), ("creationDate != 5", true, false),
            ("creationDate < 6", false, true), ("creationDate >= 0", false, true),
            ("NOT creationDate < 6", true, false), ("creationDate < nil", false, false),
            ("NOT creationDate < nil", true, true), ("creationDate BETWEEN {0, 9}", false, true),
            ("creationDate IN {nil, 7}", true, false), ("NOT creationDate IN {7}", true, true),
            ("caption CONTAINS ''", false, true), ("NOT caption CONTAINS 'x'", true, false),
            ("caption != 'x'", true, false), ("caption !=[cd] 'X'", true, false), ("caption ==[c] nil", true, false),
            ("caption CONTAINS nil", false, false), ("ANY keywords == nil", false, false),
            ("location.latitude == nil", true, true), ("NEAR(0, 0, 20037508)", false, false),
        ]
        for (text, isBare, isDated) in cases {
            let predicate = try Predicate(format: text, of: .asset)
            #expect(predicate.evaluate(bare) == isBare, "\(text) without values")
            #expect(predicate.evaluate(dated) == isDated, "\(text) with values")
        }
    }

    @Test func `ANY tests each keyword`() throws {
        var asset = Asset(id: RandomEntities.id(.asset, 1))
        asset.keywords = ["Été", "beach"]
        for (text, truth) in [
            ("ANY keywords == 'beach'", true), ("ANY keywords == 'Beach'", false), ("ANY keywords ==[c] 'Beach'", true),
            ("SOME keywords CONTAINS[cd] 'ET'", true), ("NONE keywords == 'beach'", false),
            ("ANY keywords IN {'sea', 'beach'}", true), ("ANY keywords IN {}", false),
            ("ANY keywords LIKE 'b*h'", true),
        ] {
            #expect(try Predicate(format: text, of: .asset).evaluate(asset) == truth, "\(text)")
        }
    }

    @Test func `locations are matched by distance and by box`() throws {
        var asset = Asset(id: RandomEntities.id(.asset, 1))
        asset.location = Location(latitude: 48.8584, longitude: 2.2945)
        for (text, truth) in [
            ("NEAR(48.8566, 2.3522, 5000)", true), ("near(48.8566, 2.3522, 1000)", false),
            ("INSIDE(48, 2, 49, 3)", true), ("INSIDE(48, 3, 49, 2)", false), ("INSIDE(48, 170, 49, 2.5)", true),
            ("location.latitude > 48 AND location.longitude < 3", true),
        ] {
            #expect(try Predicate(format: text, of: .asset).evaluate(asset) == truth, "\(text)")
        }
    }

    @Test func `collections and lists have their own keys`() throws {
        var album = AssetCollection(id: RandomEntities.id(.assetCollection, 1))
        album.title = "Été 2024"
        album.estimatedAssetCount = 12
        album.startDate = 1_714_521_600_000_000
        #expect(try Predicate(format: "localizedTitle BEGINSWITH[cd] 'ete'", of: .assetCollection).evaluate(album))
        #expect(try Predicate(format: "title == %@", arguments: ["Été 2024"], of: .collection).evaluate(album))
        #expect(try Predicate(format: "estimatedAssetCount > 11", of: .assetCollection).evaluate(album))
        #expect(try Predicate(format: "startDate >= '2024-05-01'", of: .assetCollection).evaluate(album))
        var folder = CollectionList(id: RandomEntities.id(.collectionList, 1))
        folder.title = "Trips"
        #expect(try Predicate(format: "title LIKE 'T*s' AND endDate == nil", of: .collectionList).evaluate(folder))
        #expect(
            try Predicate(format: "SELF == %@", arguments: [.string(folder.id.text)], of: .collectionList)
                .evaluate(folder)
        )
        #expect(throws: PredicateError.self) { try Predicate(format: "estimatedAssetCount > 1", of: .collectionList) }
        #expect(throws: PredicateError.self) { try Predicate(format: "rating > 1", of: .assetCollection) }
    }

    @Test(arguments: [
        ("rating > 3", 0), ("caption CONTAINS 'b'", 10), ("caption CONTAINS 'b' OR caption CONTAINS 'c'", 20),
        ("ANY keywords CONTAINS 'b'", 1000), ("title CONTAINS 'b'", 0), ("caption CONTAINS[cd] 'b'", 842),
    ])
    func `the steps of an evaluation depend only on the texts that are tested`(format: String, steps: Int) throws {
        var asset = Asset(id: RandomEntities.id(.asset, 1), revision: Revision(1))
        asset.caption = "caption é"
        asset.keywords = [String(repeating: "a", count: 600), String(repeating: "b", count: 400)]
        var sizes: [PredicateKey: TextSize] = [:]
        asset.addTextSizes(of: .asset, to: &sizes)
        let predicate = try Predicate(format: format, of: .asset)
        #expect(predicate.steps(for: sizes) == steps)
        #expect(predicate.testsTexts == (format != "rating > 3"))
    }
}

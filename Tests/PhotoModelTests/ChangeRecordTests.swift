import JSONValue
import PhotoModel
import TestSupport
import Testing

/// The bytes of change records never change, because change logs store them permanently.
///
/// A failure here means that old logs can no longer be read, or that equal records no longer have equal bytes. Never
/// change the expected text.
@Suite(.timeLimit(.minutes(5)))
struct ChangeRecordTests {
    private static let minimalText =
        #"{"sequence":1,"library":"0123456789abcdef0123456789abcdef","date":0,"origin":{"identity":"clock"}}"#

    @Test func `a minimal record is encoded as the expected bytes`() throws {
        let record = ChangeRecord(
            sequence: 1,
            library: "0123456789abcdef0123456789abcdef",
            date: 0,
            origin: ChangeOrigin(identity: "clock")
        )
        #expect(String(decoding: record.bytes, as: UTF8.self) == Self.minimalText)
        #expect(try ChangeRecord(json: JSON(parsing: Self.minimalText)) == record)
        #expect(record.topics == [])
    }

    @Test func `a full record is encoded as the expected bytes`() throws {
        let record = try Self.full()
        #expect(String(decoding: record.bytes, as: UTF8.self) == Self.fullText)
        #expect(record.bytes == record.json.bytes)
        #expect(try ChangeRecord(json: JSON(parsing: Self.fullText)) == record)
        #expect(try ChangeRecord(json: JSON(parsing: Self.fullText)).bytes == Array(Self.fullText.utf8))
        #expect(
            record.topics == [
                "asset.a0123456789abcdefghjkmnpqrs", "asset.a0123456789abcdefghjkmnpqrt",
                "collection.c0123456789abcdefghjkmnpqrs", "list.l0123456789abcdefghjkmnpqrs", "edit.edit-1",
                "edit.edit-2",
            ]
        )
        #expect(record.assets[0].isContentChanged)
        #expect(record.token.description == "0123456789abcdef0123456789abcdef.9223372036854775807")
    }

    @Test func `the encoding of a record ends soon after the limit`() throws {
        var record = try Self.full()
        record.assets = Array(repeating: record.assets[0], count: 100)
        let whole = record.bytes
        #expect(record.bytes(limit: whole.count) == whole)
        let part = record.bytes(limit: 1000)
        #expect(part.count > 1000 && part.count < whole.count / 10)
    }

    @Test func `the written text of a record equals the text of its table`() {
        var random = SeededRandom(named: "record texts")
        for number in 0..<TestEnvironment.rounds(300) {
            var record = ChangeRecord(
                sequence: Int64(number + 1),
                library: "0123456789abcdef0123456789abcdef",
                date: Int64(number) * 1_000_003,
                origin: ChangeOrigin(identity: random.pick(RandomEntities.texts))
            )
            if random.one(in: 2) { record.origin.client = random.pick(RandomEntities.texts) }
            if random.one(in: 2) { record.origin.transaction = "t-\(number)" }
            if random.one(in: 2) { record.origin.onBehalfOf = "uid:\(number)" }
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let (before, after) = (
                    RandomEntities.asset(number, using: &random), RandomEntities.asset(number, using: &random)
                )
                let isNew = random.one(in: 3)
                let isDeleted = !isNew && random.one(in: 3)
                record.assets.append(EntityChange(before: isNew ? nil : before, after: isDeleted ? nil : after))
            }
            if random.one(in: 3) {
                let grant = Grant(identity: "key:\(number)", purpose: random.pick(RandomEntities.texts), key: "k")
                record.grants = [EntityChange(before: random.one(in: 2) ? grant : nil, after: grant)]
            }
            if random.one(in: 3) {
                record.questions = [
                    ConsentQuestion(
                        id: "q\(number)",
                        identity: "key:\(number)",
                        summary: random.pick(RandomEntities.texts),
                        date: Int64(number)
                    )
                ]
            }
            #expect(record.bytes == record.json.bytes)
        }
    }

    @Test(arguments: [-1, 1.5, "3"] as [JSON])
    func `a question whose counts are not whole numbers from 0 is refused`(count: JSON) throws {
        let good = ConsentQuestion(id: "q", identity: "key:a", counts: ["asset.delete": 3])
        #expect(try ConsentQuestion(json: good.json) == good)
        var bad = good
        bad.counts = ["asset.delete": count]
        let json = bad.json
        let problem = #expect(throws: JSONProblem.self) { try ConsentQuestion(json: json) }
        #expect(problem?.path == ["counts", "asset.delete"])
    }

    @Test func `the written text of a record in which an asset has few changes equals the text of its table`() throws {
        var random = SeededRandom(named: "record texts of small changes")
        let rounds = TestEnvironment.rounds(600)
        var compared = 0
        for number in 0..<rounds {
            let before = RandomEntities.asset(number, using: &random)
            let other = try #require(RandomEntities.asset(number, using: &random).json.objectValue)
            var members = try #require(before.json.objectValue)
            for _ in 0..<Int.random(in: 1...2, using: &random) {
                let name = random.pick(Asset.table.fields).name
                members[name] = other[name]
            }
            var record = ChangeRecord(
                sequence: 1,
                library: "0123456789abcdef0123456789abcdef",
                date: 0,
                origin: ChangeOrigin(identity: "uid:1000")
            )
            // Two members of different assets may contradict each other.
            guard let after = try? Asset(json: .object(members)) else { continue }
            record.assets = [EntityChange(before: before, after: after)]
            #expect(record.bytes == record.json.bytes)
            compared += 1
        }
        #expect(compared > rounds / 2, "only \(compared) of \(rounds) records were compared")
    }

    @Test func `members of a newer format are ignored, and the error for an invalid member has its path`() throws {
        let newer = Self.minimalText.dropLast() + #","someday":[1]}"#
        #expect(try ChangeRecord(json: JSON(parsing: String(newer))).bytes == Array(Self.minimalText.utf8))
        let broken = try JSON(parsing: Self.minimalText.replacing(#""sequence":1"#, with: #""sequence":0"#))
        #expect(try #require(throws: JSONProblem.self) { try ChangeRecord(json: broken) }.path == ["sequence"])
        let empty = try JSON(parsing: Self.minimalText.dropLast() + #","assets":[{"before":null,"after":null}]}"#)
        #expect(try #require(throws: JSONProblem.self) { try ChangeRecord(json: empty) }.path == ["assets", "0"])
    }

    private static func full() throws -> ChangeRecord {
        let asset = try #require(ObjectID("a0123456789abcdefghjkmnpqrs"))
        let other = try #require(ObjectID("a0123456789abcdefghjkmnpqrt"))
        let album = try #require(ObjectID("c0123456789abcdefghjkmnpqrs"))
        let folder = try #require(ObjectID("l0123456789abcdefghjkmnpqrs"))
        let key = try #require(OrderKey("V1"))
        var record = ChangeRecord(
            sequence: .max,
            library: "0123456789abcdef0123456789abcdef",
            date: 1_714_521_600_000_000,
            origin: ChangeOrigin(identity: "uid:1000", client: "editor", transaction: "t-1", onBehalfOf: "uid:1001")
        )
        let before = Asset(id: asset, revision: Revision(1), contentRevision: Revision(1))
        record.assets = [
            EntityChange(before: before, after: fullAsset(asset, album, key)),
            EntityChange(before: Asset(id: other), after: nil),
        ]
        record.collections = [EntityChange(before: nil, after: fullAlbum(album, folder, key, cover: asset))]
        record.lists = [EntityChange(before: CollectionList(id: folder), after: fullFolder(folder, key))]
        record.edits = [
            PublishedEdit(id: "edit-1", asset: asset, state: .applied),
            PublishedEdit(
                id: "edit-2",
                asset: asset,
                state: .failed,
                predecessor: "edit-1",
                errorName: "conflict",
                errorMessage: "edit again"
            ),
        ]
        return record
    }

    private static func fullAsset(_ id: ObjectID, _ album: ObjectID, _ key: OrderKey) -> Asset {
        var asset = Asset(id: id, revision: Revision(.max), contentRevision: Revision(7))
        asset.mediaType = .image
        asset.mediaSubtypes = [.photoHDR, .photoLive]
        asset.playbackStyle = .livePhoto
        asset.playbackVariation = .mirror
        asset.sourceType = .typeCloudShared
        asset.contentType = "public.heic"
        asset.pixelWidth = 4032
        asset.pixelHeight = 3024
        asset.duration = 1_500_000
        asset.creationDate = 1_714_521_600_123_456
        asset.creationOffset = -3600
        asset.modificationDate = 2
        asset.contentModificationDate = 3
        asset.addedDate = 4
        asset.trashedDate = 5
        asset.location = Location(latitude: 48.8584, longitude: -2.25, altitude: 33)
        asset.isFavorite = true
        asset.isHidden = true
        asset.burstIdentifier = "burst"
        asset.representsBurst = true
        asset.burstSelectionTypes = [.autoPick, .userPick]
        asset.rating = 5
        asset.caption = "Été \"à\" Paris\n\u{1}"
        asset.keywords = ["sea", "日本"]
        asset.originalFilename = "IMG_0001.HEIC"
        asset.cameraMake = "Maker"
        asset.cameraModel = "Camera"
        asset.lensModel = "Lens 50/1.8"
        asset.sharpness = 12.5
        asset.adjustmentFormatIdentifier = "org.example.adjustments"
        asset.adjustmentFormatVersion = "1"
        asset.adjustmentDate = 6
        asset.resources = [
            AssetResource(
                type: .photo,
                digest: String(repeating: "0", count: 64),
                size: 123_456,
                contentType: "public.heic",
                originalFilename: "IMG_0001.HEIC",
                pixelWidth: 4032,
                pixelHeight: 3024
            ),
            AssetResource(type: .adjustmentData, digest: String(repeating: "f", count: 64), size: 1, contentType: "x"),
        ]
        asset.memberships = [Membership(collection: album, key: key)]
        return asset
    }

    private static func fullAlbum(_ id: ObjectID, _ parent: ObjectID, _ key: OrderKey, cover: ObjectID)
        -> AssetCollection
    {
        var album = AssetCollection(id: id, revision: Revision(2))
        album.subtype = .albumImported
        album.title = "Album"
        album.parent = parent
        album.parentKey = key
        album.creationDate = 1
        album.modificationDate = 2
        album.startDate = -3
        album.endDate = 4
        album.estimatedAssetCount = 5
        album.keyAsset = cover
        return album
    }

    private static func fullFolder(_ id: ObjectID, _ key: OrderKey) -> CollectionList {
        var folder = CollectionList(id: id, revision: Revision(2))
        folder.title = "Folder"
        folder.parent = .root
        folder.parentKey = key
        folder.creationDate = 1
        folder.modificationDate = 2
        folder.startDate = -3
        folder.endDate = 4
        folder.childCount = 5
        return folder
    }

    private static let fullText = #"""
        {"sequence":9223372036854775807,"library":"0123456789abcdef0123456789abcdef","date":1714521600000000,\#
        "origin":{"identity":"uid:1000","client":"editor","transaction":"t-1","onBehalfOf":"uid:1001"},\#
        "assets":[{"before":{"id":"a0123456789abcdefghjkmnpqrs","revision":"r1","contentRevision":"r1",\#
        "mediaType":"unknown","mediaSubtypes":[],"playbackStyle":"unsupported","sourceType":"typeUserLibrary",\#
        "contentType":"","pixelWidth":0,"pixelHeight":0,"duration":0,"modificationDate":0,\#
        "contentModificationDate":0,"addedDate":0,"isFavorite":false,"isHidden":false,"resources":[]},\#
        "after":{"id":"a0123456789abcdefghjkmnpqrs","revision":"r9223372036854775807","contentRevision":"r7",\#
        "mediaType":"image","mediaSubtypes":["photoHDR","photoLive"],"playbackStyle":"livePhoto",\#
        "playbackVariation":"mirror","sourceType":"typeCloudShared","contentType":"public.heic",\#
        "pixelWidth":4032,"pixelHeight":3024,"duration":1500000,"creationDate":1714521600123456,\#
        "creationOffset":-3600,"modificationDate":2,"contentModificationDate":3,"addedDate":4,"trashedDate":5,\#
        "location":{"latitude":48.8584,"longitude":-2.25,"altitude":33.0},"isFavorite":true,"isHidden":true,\#
        "burstIdentifier":"burst","representsBurst":true,"burstSelectionTypes":["autoPick","userPick"],\#
        "sharpness":12.5,"rating":5,"caption":"Été \"à\" Paris\n\u0001","keywords":["sea","日本"],\#
        "originalFilename":"IMG_0001.HEIC","cameraMake":"Maker","cameraModel":"Camera","lensModel":"Lens 50/1.8",\#
        "adjustmentFormatIdentifier":"org.example.adjustments","adjustmentFormatVersion":"1","adjustmentDate":6,\#
        "adjustmentsState":"userAdjusted",\#
        "resources":[{"type":"photo","digest":"0000000000000000000000000000000000000000000000000000000000000000",\#
        "size":123456,"contentType":"public.heic","originalFilename":"IMG_0001.HEIC","pixelWidth":4032,\#
        "pixelHeight":3024},{"type":"adjustmentData",\#
        "digest":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","size":1,"contentType":"x",\#
        "pixelWidth":0,"pixelHeight":0}],"memberships":[{"collection":"c0123456789abcdefghjkmnpqrs",\#
        "key":"V1"}]}},{"before":{"id":"a0123456789abcdefghjkmnpqrt","revision":"r0","contentRevision":"r0",\#
        "mediaType":"unknown","mediaSubtypes":[],"playbackStyle":"unsupported","sourceType":"typeUserLibrary",\#
        "contentType":"","pixelWidth":0,"pixelHeight":0,"duration":0,"modificationDate":0,\#
        "contentModificationDate":0,"addedDate":0,"isFavorite":false,"isHidden":false,"resources":[]},\#
        "after":null}],"collections":[{"before":null,"after":{"id":"c0123456789abcdefghjkmnpqrs","revision":"r2",\#
        "type":"album","subtype":"albumImported","canContainAssets":true,"canContainCollections":false,"title":"Album","parent":"l0123456789abcdefghjkmnpqrs",\#
        "parentKey":"V1","creationDate":1,"modificationDate":2,"startDate":-3,"endDate":4,\#
        "estimatedAssetCount":5,"keyAsset":"a0123456789abcdefghjkmnpqrs"}}],\#
        "lists":[{"before":{"id":"l0123456789abcdefghjkmnpqrs","revision":"r0","type":"folder",\#
        "subtype":"regularFolder","canContainAssets":false,"canContainCollections":true,"creationDate":0,"modificationDate":0,"childCount":0},\#
        "after":{"id":"l0123456789abcdefghjkmnpqrs","revision":"r2","type":"folder","subtype":"regularFolder",\#
        "canContainAssets":false,"canContainCollections":true,"title":"Folder","parent":"l00000000000000000000000000","parentKey":"V1","creationDate":1,\#
        "modificationDate":2,"startDate":-3,"endDate":4,"childCount":5}}],"edits":[{"id":"edit-1",\#
        "asset":"a0123456789abcdefghjkmnpqrs","state":"applied"},{"id":"edit-2",\#
        "asset":"a0123456789abcdefghjkmnpqrs","state":"failed","after":"edit-1","errorName":"conflict",\#
        "errorMessage":"edit again"}]}
        """#
}

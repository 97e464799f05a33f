import Messaging
import Basics
import Contracts
import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of the specification about changes: the contents of a transaction, and the state after a refused one.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ChangeRowTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("rows") }

    private static func edit(_ id: ObjectID, _ attachment: Int, format: String = "org.example.sepia") -> ChangeRequest {
        .editAsset(
            .init(
                id: id,
                render: NewResource(source: .attachment(attachment)),
                adjustmentData: AdjustmentData(formatIdentifier: format, formatVersion: "1", attachment: 0)
            )
        )
    }

    @Test(.spec("S-83", "S-73", "P-15"))
    func `three edits in one transaction are all applied, or none is`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...3).map { image($0) })
            let head = try await catalog.call(CurrentToken()).token
            let requests = ids.enumerated().map { Self.edit($1, $0 + 1) }
            let broken: [Bytes] = [[1], image(11), Array("not an image".utf8), image(13)]
            let error = await rpcError { try await catalog.perform(requests, attachments: broken) }
            #expect(error?.name == "invalid_resource" && error?.data["request"] == 1)
            #expect(try await catalog.call(CurrentToken()).token == head)
            #expect(try await catalog.assets().allSatisfy { !$0.hasAdjustments && $0.resources.count == 1 })
            let whole: [Bytes] = [[1], image(11), image(12), image(13)]
            let result = try await catalog.perform(requests, attachments: whole)
            #expect(result.sequence == head.sequence + 1)
            #expect(try await catalog.assets().allSatisfy { $0.hasAdjustments && $0.resources.count == 3 })
            let records = try await catalog.call(ChangesSince(token: head)).records
            #expect(try records.map { try ChangeRecord(json: $0).assets.count } == [3])
        }
    }

    @Test(.spec("T-22")) func `an asset can be created with its edit, and reverted`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            func create(_ attachment: Int) -> ChangeRequest {
                .createAsset(
                    .init(
                        ref: "p",
                        resources: [NewResource(source: .attachment(1))],
                        edit: NewEdit(
                            render: NewResource(source: .attachment(attachment)),
                            adjustmentData: AdjustmentData(formatIdentifier: "a.b", formatVersion: "2", attachment: 0)
                        )
                    )
                )
            }
            let render = TestImages.jpeg(width: 20, height: 10, seed: 2)
            let turned = TestImages.jpeg(width: 20, height: 10, orientation: 3, seed: 2)
            let bytes: [Bytes] = [[5, 6], image(1), render, turned]
            let error = await rpcError { try await catalog.perform([create(3)], attachments: bytes) }
            #expect(error?.name == "invalid_resource")
            #expect(try await catalog.assets().isEmpty)
            let result = try await catalog.perform([create(2)], attachments: bytes)
            let id = try #require(result.id("p"))
            let asset = try await catalog.asset(id)
            #expect(asset.resources.map(\.type) == [.photo, .fullSizePhoto, .adjustmentData])
            #expect(asset.adjustmentFormatIdentifier == "a.b" && asset.pixelWidth == 20)
            try await catalog.perform([.revertAsset(.init(id: id))])
            let reverted = try await catalog.asset(id)
            #expect(reverted.resources.map(\.type) == [.photo] && reverted.pixelWidth == 32)
            // The library has these bytes already: the request yields the existing asset, unchanged.
            let again = try await catalog.perform([create(2)], attachments: bytes)
            #expect(again.id("p") == id && again.duplicates == ["p"] && !again.isChanged)
            #expect(again.ignored == [.init(request: 0, ref: "p", members: ["edit"])])
        }
    }

    @Test(.spec("T-20")) func `clients can ask which resource types an asset may have`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let combinations: [([ResourceType], Bool)] = [
                ([.photo], true), ([.video], true), ([.photo, .pairedVideo], true), ([.photo, .alternatePhoto], true),
                ([.photo, .alternatePhoto, .pairedVideo], true), ([.photo, .photo], false), ([], false),
                ([.video, .pairedVideo], false), ([.photo, .video], false), ([.pairedVideo], false),
                ([.photo, .adjustmentData], false),
            ]
            for (types, isSupported) in combinations {
                let answer = try await catalog.call(SupportsResources(types: types))
                #expect(answer.isSupported == isSupported, "\(types)")
            }
        }
    }

    @Test(.spec("T-21"))
    func `a moved file is removed once its transaction is committed, and stays if it is not`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            func create(_ path: String, _ ref: String = "p", name: String? = nil) -> ChangeRequest {
                let new = NewResource(source: .path(path), originalFilename: name, isMoved: true)
                return .createAsset(.init(ref: ref, resources: [new]))
            }
            let first = try folder.write(image(1), to: "in/one.jpg")
            let bad = ChangeRequest.deleteAssets(.init(ids: [.none]))
            let missing = await rpcError { try await catalog.perform([create(first), bad]) }
            #expect(missing?.name == "identifier_not_found")
            #expect(FileManager.default.fileExists(atPath: first))
            let result = try await catalog.perform([create(first, name: "Named.jpg")])
            #expect(!FileManager.default.fileExists(atPath: first))
            let asset = try await catalog.asset(try #require(result.id("p")))
            #expect(asset.originalFilename == "Named.jpg")
            let read = ReadResource(asset: asset.id, type: .photo)
            #expect(try await catalog.client.call(ReadResource.method, read.json).attachments == [image(1)])

            let second = try folder.write(image(2), to: "in/two.jpg")
            try FileManager.default.linkItem(atPath: second, toPath: folder.file("in/other.jpg"))
            let linked = await rpcError { try await catalog.perform([create(second)]) }
            #expect(linked?.name == "request_not_supported")
            #expect(FileManager.default.fileExists(atPath: second))
            let bytes = ChangeRequest.createAsset(
                .init(resources: [NewResource(source: .attachment(0), isMoved: true)])
            )
            let error = await rpcError { try await catalog.perform([bytes], attachments: [image(3)]) }
            #expect(error?.name == "invalid_params" && error?.data["parameter"] == "move")
        }
    }

    @Test(.spec("T-29", "S-75"))
    func `transactions cannot be nested, and only transactions change an entity`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let inner: JSON = ["type": "changes.perform", "requests": []]
            let outer: JSON = ["requests": [["type": "asset.delete", "ids": [.string(id.text)]], inner]]
            let error = await rpcError { try await catalog.client.call(PerformChanges.method, outer) }
            #expect(error?.name == "nested_change" && error?.data["request"] == 1)
            let token = try await catalog.call(CurrentToken()).token
            let before = try await catalog.everything()
            // Calls all other methods, with valid and with invalid parameters.
            for method in CatalogRequest.methods where method.name != PerformChanges.method {
                let forms: [JSON] = [
                    [:], ["ids": [.string(id.text)]], ["fetches": []], ["from": .string(token.description)],
                    ["collection": .string(SmartAlbum.favorites.id.text)], ["set": ["isFavorite": true]],
                    ["requests": [["type": "asset.delete", "ids": [.string(id.text)]]]],
                ]
                if method.name == ChangesFollow.method || method.name == "library.backup" { continue }
                for form in forms { _ = try? await catalog.client.call(method.name, form) }
            }
            #expect(try await catalog.call(CurrentToken()).token == token)
            #expect(try await catalog.everything() == before)
        }
    }

    @Test(.spec("S-72", "S-71"))
    func `the outcome of a write whose deadline passed can be looked up by its transaction id`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let requests = [ChangeRequest.createCollection(.init(ref: "c", title: "Once"))]
            let call = PerformChanges(requests: requests, client: "k", transaction: "t")
            var outcomes: [String] = []
            for deadline in [1, 1, 2, 30_000] {
                do {
                    _ = try await catalog.client.call(
                        PerformChanges.method,
                        call.json,
                        deadline: .milliseconds(deadline)
                    )
                    outcomes.append("applied")
                } catch let error as RPCError {
                    outcomes.append(error.name)
                }
            }
            #expect(outcomes.last == "applied" && Set(outcomes).isSubset(of: ["applied", "deadline_exceeded"]))
            // In spite of the deadlines, the write happened once, and a read after the reply sees it.
            #expect(try await catalog.collections().map(\.title) == ["Once"])
            #expect(try await catalog.history().count == 1)
        }
    }

    @Test(.spec("T-43", "P-15", "D11", "P-20")) func `every failure has a name, a code and a message`() async throws {
        for refusal in ErrorCode.allCases {
            #expect(refusal.code != -1 && !refusal.rawValue.isEmpty && refusal.summary.count > 10)
        }
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0].text
            let calls: [(String, JSON, String)] = [
                (FetchAssets.method, ["fetch": ["predicate": "shoeSize == 3"]], "unsupported_predicate"),
                (FetchAssets.method, ["fetch": ["predicate": "rating >"]], "invalid_predicate"),
                (FetchAssets.method, ["fetch": ["sort": [["key": "SELF"]]]], "unsupported_sort_key"),
                (FetchAssets.method, ["fetch": ["kind": "collections"]], "invalid_options"),
                (FetchAssets.method, ["token": "nonsense"], "invalid_params"),
                (FetchObjects.method, ["fetch": [:], "at": [9]], "range_error"),
                (PerformChanges.method, ["requests": [["type": "no.such"]]], "invalid_params"),
                (
                    PerformChanges.method,
                    ["requests": [["type": "asset.delete", "ids": ["a00000000000000000000000001"]]]],
                    "identifier_not_found"
                ),
                (
                    PerformChanges.method,
                    ["requests": [["type": "asset.update", "id": .string(id), "set": [:], "ifRevision": "r99"]]],
                    "conflict"
                ),
            ]
            for (method, params, name) in calls {
                let error = await rpcError { try await catalog.client.call(method, params) }
                #expect(error?.name == name && (error?.message.count ?? 0) > 10, "\(method) \(params.text)")
            }
            for (bytes, file) in [
                (Bytes(), "empty.jpg"), (Array("text".utf8), "text.jpg"), (Array(image(1).prefix(300)), "cut"),
            ] {
                let path = try folder.write(bytes, to: "in/\(file)")
                let create = ChangeRequest.createAsset(.init(resources: [NewResource(source: .path(path))]))
                let error = await rpcError { try await catalog.perform([create]) }
                #expect(error?.name == "invalid_resource" && error?.data["file"] == .string(path), "\(file)")
                #expect(error?.data["request"] == 0 && error?.data["reason"] != nil)
            }
        }
    }
}

import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RequestTableTests {
    private let asset = ObjectID("a01hzy3v9k7q8r5t2w4x6y8z0ab") ?? .none

    @Test func `a request is encoded and decoded without loss`() throws {
        let request = ImageRequest(
            asset: asset,
            targetSize: .size(width: 512, height: 256),
            contentMode: .aspectFill,
            resizeMode: .exact,
            normalizedCropRect: UnitRect(x: 0.5, y: 0, width: 0.5, height: 1)
        )
        #expect(try ImageRequest(params: JSON(parsing: request.json.bytes)).json == request.json)
    }

    @Test func `default values are not encoded`() {
        #expect(
            ImageRequest(asset: asset, targetSize: .maximum).json.text
                == #"{"asset":"a01hzy3v9k7q8r5t2w4x6y8z0ab","targetSize":"max"}"#
        )
    }

    @Test(arguments: [
        (#"{}"#, "asset"),
        (#"{"asset":"x","targetSize":"max"}"#, "asset"),
        (#"{"asset":"a01hzy3v9k7q8r5t2w4x6y8z0ab","targetSize":{"width":20000,"height":1}}"#, "targetSize.width"),
        (#"{"asset":"a01hzy3v9k7q8r5t2w4x6y8z0ab","targetSize":"max","colour":"blue"}"#, "colour"),
        (#"{"asset":"a01hzy3v9k7q8r5t2w4x6y8z0ab","targetSize":"max","quality":1e300}"#, "quality"),
        (#"{"asset":"a01hzy3v9k7q8r5t2w4x6y8z0ab","targetSize":"max","resizeMode":"Fast"}"#, "resizeMode"),
        (
            #"{"asset":"a01hzy3v9k7q8r5t2w4x6y8z0ab","targetSize":"max","normalizedCropRect":{"x":0}}"#,
            "normalizedCropRect.y"
        ),
    ])
    func `an invalid parameter is named in the error`(params: String, parameter: String) throws {
        let json = try JSON(parsing: params)
        let error = #expect(throws: RPCError.self) { try ImageRequest(params: json) }
        #expect(error?.errorCode == .invalidParams)
        #expect(error?.data["parameter"]?.stringValue == parameter)
    }

    @Test func `an empty transaction id is refused with the parameter's name, and null means none`() throws {
        let error = #expect(throws: RPCError.self) { try PerformChanges(params: ["requests": [], "transaction": ""]) }
        #expect(error?.errorCode == .invalidParams && error?.data["parameter"]?.stringValue == "transaction")
        let adjustments: JSON = ["version": 1, "operations": []]
        let apply: JSON = ["asset": .string(asset.text), "adjustments": adjustments, "transaction": ""]
        let other = #expect(throws: RPCError.self) { try ApplyEdit(params: apply) }
        #expect(other?.data["parameter"]?.stringValue == "transaction")
        #expect(try PerformChanges(params: ["requests": [], "transaction": .null]).transaction == nil)
        #expect(try PerformChanges(params: ["requests": [], "client": ""]).client == "")
    }

    @Test func `the schema of each change request requires its type`() throws {
        let requests = PerformChanges.table.schema["properties"]?["requests"]?["items"]?["oneOf"]?.arrayValue ?? []
        #expect(requests.count > 10)
        for request in requests {
            #expect(request["required"]?.arrayValue?.contains("type") == true, "\(request["title"] ?? .null)")
            #expect(request["properties"]?["type"]?["const"] == request["title"])
        }
    }

    @Test func `a text with a zero byte is refused if the catalog stores the text`() throws {
        for name in ["client", "transaction"] {
            let error = #expect(throws: RPCError.self) {
                try PerformChanges(params: ["requests": [], name: "a\0b"])
            }
            #expect(error?.errorCode == .invalidParams && error?.data["parameter"]?.stringValue == name)
        }
        let error = #expect(throws: RPCError.self) { try OpenSession(params: ["purpose": "a\0b"]) }
        #expect(error?.errorCode == .invalidParams && error?.message.contains("U+0000") == true)
    }

    @Test func `change requests are encoded and decoded without loss`() throws {
        let requests: [ChangeRequest] = [
            .createAsset(
                .init(
                    ref: "p1",
                    resources: [NewResource(source: .attachment(0), originalFilename: "a.jpg")],
                    set: AssetPatch(isFavorite: true, location: .some(nil))
                )
            ),
            .updateAsset(
                .init(id: .id(asset), set: AssetPatch(creationDate: .some(12), caption: "x"), ifRevision: Revision(7))
            ),
            .deleteAssets(.init(ids: [asset])),
            .editAsset(
                .init(
                    id: asset,
                    render: NewResource(type: .fullSizePhoto, source: .upload("u")),
                    adjustmentData: AdjustmentData(formatIdentifier: "f", formatVersion: "1", attachment: 1)
                )
            ),
            .revertAsset(.init(id: asset)),
            .createCollection(.init(ref: "c", title: "Summer", add: [.placeholder("p1"), .id(asset)])),
            .updateCollection(.init(id: .placeholder("c"), title: "Winter", remove: [asset])),
        ]
        let perform = PerformChanges(requests: requests, client: "test", transaction: "t1")
        let decoded = try PerformChanges(params: JSON(parsing: perform.json.bytes))
        #expect(decoded.requests == requests)
    }

    @Test(.spec("T-27")) func `keywords of a request for a new asset are encoded only if it has any`() throws {
        var create = ChangeRequest.CreateAsset(ref: "p", resources: [NewResource(source: .attachment(0))])
        // The digests of requests, which are stored, are those of this text.
        let text = #"{"ref":"p","resources":[{"attachment":0}],"type":"asset.create"}"#
        #expect(ChangeRequest.createAsset(create).json.canonical.text == text)
        create.addKeywords = ["sea"]
        create.removeKeywords = ["sun"]
        let perform = PerformChanges(requests: [.createAsset(create)])
        let decoded = try PerformChanges(params: JSON(parsing: perform.json.bytes))
        #expect(decoded.requests == [.createAsset(create)])
        let error = #expect(throws: RPCError.self) {
            try PerformChanges(
                params: ["requests": [["type": "asset.create", "resources": [], "addKeywords": [1]]]]
            )
        }
        #expect(error?.errorCode == .invalidParams)
    }

    @Test func `the written text of a result equals the text of its table`() throws {
        let token = ChangeToken(library: String(repeating: "a", count: 32), sequence: .max)
        var results = [
            PerformChanges.Result(token: token, isChanged: true), PerformChanges.Result(token: .none, isChanged: false),
            PerformChanges.Result(token: token, isChanged: true, placeholders: ["p": .string(asset.text)]),
            PerformChanges.Result(token: token, isChanged: true, duplicates: ["p"]),
            PerformChanges.Result(token: token, isChanged: true, restored: [asset]),
            PerformChanges.Result(token: token, isChanged: true, ignored: [.init(request: 0, members: ["burst"])]),
            PerformChanges.Result(token: token, isChanged: true, sameImage: [.init(request: 0, assets: [asset])]),
            PerformChanges.Result(token: token, isChanged: true, healed: ["d"]),
        ]
        results[0].sequence = 7
        for result in results { #expect(result.bytes == result.json.bytes) }
    }

    @Test func `a transaction inside a transaction is refused as nested, even if other members are invalid`() throws {
        let params = try JSON(parsing: #"{"requests":[{"type":"asset.explode"},{"type":"changes.perform"}],"x":1}"#)
        let error = #expect(throws: RPCError.self) { try PerformChanges(params: params) }
        #expect(error?.errorCode == .nestedChange && error?.data["request"] == 1)
    }

    @Test func `null clears a property and an absent one is unchanged`() throws {
        let patch = try AssetPatch(json: JSON(parsing: #"{"location":null}"#))
        #expect(patch.location == .some(nil))
        #expect(patch.caption == .none)
    }

    @Test func `null is refused for a property that cannot be cleared`() throws {
        let names = [
            "isFavorite", "isHidden", "isUserPick", "representsBurst", "rating", "keywords", "playbackVariation",
        ]
        for name in names {
            let update: JSON = ["type": "asset.update", "id": .string(ObjectID.root.text), "set": [name: .null]]
            let error = #expect(throws: RPCError.self, "\(name)") { try PerformChanges(params: ["requests": [update]]) }
            #expect(error?.errorCode == .invalidParams && error?.data["parameter"] == .string("requests.0.set.\(name)"))
        }
    }

    @Test func `adjustment data with an empty format identifier is refused`() throws {
        for format in ["", "org.example.edit"] {
            let data: JSON = ["formatIdentifier": .string(format), "formatVersion": "", "attachment": 0]
            #expect(((try? AdjustmentData(json: data)) == nil) == format.isEmpty, "\(format)")
        }
    }

    @Test func `the error of an unknown change request lists the known ones`() throws {
        let params = try JSON(parsing: #"{"requests":[{"type":"asset.explode"}]}"#)
        let error = #expect(throws: RPCError.self) { try PerformChanges(params: params) }
        #expect(error?.message.contains("asset.create") == true)
        #expect(error?.data["parameter"] == "requests.0.type")
    }

    @Test func `every method is in the OpenRPC document once`() throws {
        for methods in [
            CatalogRequest.methods, ChangeBrokerRequest.methods, ThumbnailerRequest.methods, EditorRequest.methods,
        ] {
            let names = methods.map(\.name)
            #expect(Set(names).count == names.count)
            let document = openRPCDocument(service: "x", version: "0", methods: methods)
            #expect(document["methods"]?.arrayValue?.count == methods.count + 2, "rpc.cancel and rpc.credit")
            #expect(try JSON(parsing: document.bytes) == document)
        }
    }

    @Test func `a page has more than a thousand objects only if they are identifiers`() throws {
        let page = try FetchAssets(params: ["count": 100_000, "members": ["id", "id"]])
        #expect(page.count == 100_000 && page.projection.isIDsOnly)
        #expect(try FetchAssets(params: page.json).json == page.json)
        for params: JSON in [["count": 1001], ["count": 1001, "members": ["id", "rating"]], ["members": []]] {
            #expect(throws: RPCError.self) { try FetchAssets(params: params) }
        }
        #expect(throws: RPCError.self) { try FetchAssets(params: ["count": 100_001, "members": ["id"]]) }
    }

    @Test func `the projection of a page selects members and writes dates`() throws {
        let projection = Projection(members: ["id", "creationDate"], dates: .rfc3339)
        let page: JSON = [
            "count": 1, "creationDate": 5,
            "assets": [["id": "a", "creationDate": 1_500_000, "rating": 3]],
            "quarantined": [["digest": "d", "date": 0]],
        ]
        #expect(
            projection.applied(to: page).text
                == #"{"count":1,"creationDate":5,"assets":[{"id":"a","creationDate":"1970-01-01T00:00:01.500000Z"}],"#
                + #""quarantined":[{"digest":"d","date":"1970-01-01T00:00:00Z"}]}"#
        )
        #expect(Projection().applied(to: page) == page)
    }

    @Test func `a fetch without a kind has the kind of its method, or the one that its members imply`() throws {
        func kind(_ fetch: JSON) throws -> FetchDescription.Kind {
            try FetchCounts(params: ["fetches": [fetch]]).fetches[0].kind
        }
        #expect(try FetchCollections(params: ["fetch": [:]]).fetch.kind == .collections)
        #expect(try FetchCollections(params: ["fetch": ["in": .string(ObjectID.root.text)]]).fetch.kind == .children)
        #expect(try FetchLists(params: ["fetch": ["limit": 3]]).fetch.kind == .lists)
        #expect(try FetchCollections(params: ["fetch": ["kind": "assets"]]).fetch.kind == .assets)
        #expect(try kind([:]) == .assets)
        #expect(try kind(["ids": [.string(ObjectID.root.text)]]) == .lists)
        #expect(try kind(["type": "moment"]) == .collections)
        #expect(try kind(["type": "momentList"]) == .lists)
        #expect(try kind(["containing": .string(asset.text)]) == .collections)
        #expect(try FetchCounts(params: ["fetches": [["type": 1, "subtype": 2]]]).fetches[0].collectionType == "1")
    }

    @Test func `dates are accepted as text and as microseconds`() throws {
        func date(_ json: JSON) throws -> Int64?? { try AssetPatch(json: ["creationDate": json]).creationDate }
        #expect(try date("1970-01-01T01:00:00.5+01:00") == 500_000)
        #expect(try date("1970-01-02") == 86_400_000_000)
        #expect(try date(7) == 7)
        #expect(try date(.null) == .some(nil))
        for json: JSON in ["noon", "", true, 1.5, 300_000_000_000_000_000] {
            #expect(throws: JSONProblem.self) { try date(json) }
        }
    }

    @Test func `the error for a method of another service names that service`() throws {
        let error = #expect(throws: RPCError.self) { try CatalogRequest(method: "image.request", params: [:]) }
        #expect(error?.data["services"] == ["thumbnailer"])
        let typo = #expect(throws: RPCError.self) { try EditorRequest(method: "edits.aply", params: [:]) }
        #expect(typo?.data["similar"] == ["edits.apply"])
    }

    @Test func `the error of an unknown method lists the known ones`() throws {
        let error = #expect(throws: RPCError.self) { try CatalogRequest(method: "fetch.everything", params: [:]) }
        #expect(error?.errorCode == .methodNotFound)
        #expect(error?.data["methods"]?.arrayValue?.contains("fetch.assets") == true)
    }
}

import Contracts
import JSONValue
import PhotoModel
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
        (#"{"asset":"a01hzy3v9k7q8r5t2w4x6y8z0ab","targetSize":{"width":20000,"height":1}}"#, "targetSize"),
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
        let back = try PerformChanges(params: JSON(parsing: perform.json.bytes))
        #expect(back.requests == requests)
    }

    @Test func `null clears a property and an absent one is unchanged`() throws {
        let patch = try AssetPatch(json: JSON(parsing: #"{"location":null}"#))
        #expect(patch.location == .some(nil))
        #expect(patch.caption == .none)
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
            #expect(document["methods"]?.arrayValue?.count == methods.count)
            #expect(try JSON(parsing: document.bytes) == document)
        }
    }

    @Test func `the error of an unknown method lists the known ones`() throws {
        let error = #expect(throws: RPCError.self) { try CatalogRequest(method: "fetch.everything", params: [:]) }
        #expect(error?.errorCode == .methodNotFound)
        #expect(error?.data["methods"]?.arrayValue?.contains("fetch.assets") == true)
    }
}

import JSONValue
import PhotoModel
import Testing

@Suite(.timeLimit(.minutes(5)))
struct UpdateAssetTests {
    @Test func `an update of flags and the rating is encoded as by its table, and decoded`() throws {
        let id = try #require(ObjectID("a0123456789abcdefghjkmnpqrs"))
        let flags: [Bool?] = [nil, true, false]
        for isFavorite in flags {
            for isHidden in flags {
                for rating in [nil, 0, 5] {
                    let patch = AssetPatch(isFavorite: isFavorite, isHidden: isHidden, rating: rating)
                    let update = ChangeRequest.UpdateAsset(id: .id(id), set: patch)
                    var expected: JSONObject = ["type": "asset.update"]
                    for (name, value) in ChangeRequest.UpdateAsset.table.encode(update).members {
                        expected[name] = value
                    }
                    #expect(ChangeRequest.updateAsset(update).json == .object(expected))
                    #expect(try JSONType.changeRequest.decode(.object(expected)) == .updateAsset(update))
                }
            }
        }
    }
}

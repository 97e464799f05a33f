import JSONValue
import TestSupport
import Testing

@testable import PhotoModel

/// The text of an asset that is written without a tree of values equals that of its table.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct AssetTextTests {
    /// Returns a random asset with files and albums.
    private static func asset(_ number: Int, _ random: inout SeededRandom) -> Asset {
        var asset = RandomEntities.asset(number, using: &random)
        asset.playbackVariation = random.pick(PlaybackVariation.allCases)
        asset.contentRevision = Revision(Int64.random(in: 0 ... .max, using: &random))
        asset.creationOffset = random.one(in: 2) ? nil : Int.random(in: -50_000...50_000, using: &random)
        asset.isRecentlyAdded = random.one(in: 2)
        asset.adjustmentFormatVersion = random.one(in: 2) ? nil : "1.\"\u{7}\\"
        asset.adjustmentDate = random.one(in: 2) ? nil : -1_234_567
        asset.location?.altitude = random.one(in: 2) ? nil : Double.random(in: -100...9000, using: &random)
        asset.resources = (0..<Int.random(in: 0...3, using: &random)).map { _ in
            AssetResource(
                type: random.pick(ResourceType.allCases),
                digest: String(repeating: "0a", count: 32),
                size: Int64.random(in: 0 ... .max, using: &random),
                contentType: random.pick(["public.jpeg", "com.adobe.raw-image"]),
                originalFilename: random.one(in: 2) ? nil : random.pick(RandomEntities.texts),
                pixelWidth: 4000,
                duration: random.one(in: 2) ? nil : 5,
                damage: random.one(in: 2) ? nil : "cut\noff"
            )
        }
        asset.memberships = OrderKey.keys(count: Int.random(in: 0...2, using: &random), after: nil).map {
            Membership(collection: RandomEntities.id(.assetCollection, number), key: $0)
        }
        return asset
    }

    @Test(.spec("S-03")) func `the written text of an asset equals the text of its table`() {
        var random = SeededRandom(named: "asset texts")
        for number in 0..<TestEnvironment.rounds(2000) {
            let asset = Self.asset(number, &random)
            var writer = JSONWriter()
            asset.write(to: &writer)
            #expect(String(decoding: writer.output, as: UTF8.self) == asset.json.text)
        }
    }

    @Test func `an asset is written with the members that a projection names`() throws {
        let names = AssetProjection.Member.allCases.map(\.name)
        #expect(names == Asset.table.fields.map(\.name))
        var random = SeededRandom(named: "asset forms")
        for number in 0..<TestEnvironment.rounds(500) {
            let asset = Self.asset(number, &random)
            let chosen = names.filter { _ in random.one(in: 3) }
            var writer = JSONWriter()
            asset.write(to: &writer, AssetProjection(members: chosen))
            let all = try #require(asset.json.objectValue).members
            let expected = JSONObject(distinct: all.filter { chosen.contains($0.name) })
            #expect(String(decoding: writer.output, as: UTF8.self) == JSON.object(expected).text)
        }
    }

    @Test func `written texts and numbers are parsed back unchanged`() throws {
        for text in RandomEntities.texts + (0...40).map({ String(repeating: "é\"", count: $0) }) {
            for byte in 0..<0x21 as Range<UInt8> {
                let text = text + String(UnicodeScalar(byte)) + "12345678"
                var writer = JSONWriter()
                writer.write(text)
                let again = try JSON(parsing: writer.output)
                #expect(again == .string(text))
            }
        }
        for number in [0, 7, -7, 10, .max, .min] as [Int64] {
            var writer = JSONWriter()
            writer.write(number)
            #expect(String(decoding: writer.output, as: UTF8.self) == String(number))
        }
    }
}

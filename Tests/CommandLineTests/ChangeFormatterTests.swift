import PhotoModel
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(5)))
struct ChangeFormatterTests {
    private func record(_ change: EntityChange<Asset>) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: 7,
            library: String(repeating: "0", count: 32),
            date: 0,
            origin: ChangeOrigin(identity: "uid:0", client: "saf\u{1B}elight")
        )
        record.assets = [change]
        return record
    }

    private func describe(_ edit: (inout Asset) -> Void) -> String {
        var before = Asset(id: .none)
        before.originalFilename = "sea.jpg"
        var after = before
        edit(&after)
        return ChangeFormatter.lines(record(EntityChange(before: before, after: after)))[0]
    }

    @Test func `a change of an asset lists its changed properties`() {
        let name = "sea.jpg (\(ObjectID.none))"
        #expect(describe { $0.isFavorite = true } == "\(name): favorite")
        #expect(
            describe {
                $0.isHidden = true; $0.rating = 3
            } == "\(name): hidden, rating is 3"
        )
        #expect(describe { $0.caption = "a\nb" } == "\(name): caption is \"a\\nb\"")
        #expect(describe { $0.modificationDate = 1 } == "\(name): changed")
        #expect(
            describe {
                $0.contentRevision = Revision(9)
                $0.adjustmentFormatIdentifier = "x"
                $0.pixelWidth = 5
            } == "\(name): edited, now 5 x 0"
        )
    }

    @Test func `adding, deleting and reverting have different texts`() {
        var edited = Asset(id: .none)
        edited.adjustmentFormatIdentifier = "x"
        var plain = Asset(id: .none)
        plain.contentRevision = Revision(4)
        #expect(ChangeFormatter.describe(EntityChange(before: nil, after: plain), titles: [:]) == "added")
        #expect(ChangeFormatter.describe(EntityChange(before: plain, after: nil), titles: [:]) == "deleted")
        #expect(
            ChangeFormatter.describe(EntityChange(before: edited, after: plain), titles: [:])
                == "reverted to the original"
        )
    }

    @Test func `moments and their months are not called albums and folders of the user`() throws {
        var record = record(EntityChange(before: nil, after: Asset(id: .none)))
        var moment = AssetCollection(id: ScriptedService.id("c", 1))
        (moment.type, moment.title) = (.moment, "2023-12-24")
        var month = CollectionList(id: ScriptedService.id("l", 1))
        (month.type, month.title) = (.momentList, "2023-12")
        record.collections = [EntityChange(before: moment, after: nil)]
        record.lists = [EntityChange(before: month, after: nil)]
        let lines = ChangeFormatter.lines(record)
        #expect(Array(lines.suffix(2)) == ["moment \"2023-12-24\": deleted", "moments of 2023-12: deleted"])
    }

    @Test func `the heading contains date, sequence and escaped origin`() {
        let heading = ChangeFormatter.heading(record(EntityChange(before: nil, after: Asset(id: .none))))
        #expect(heading == "1970-01-01 00:00:00 UTC  #7  uid:0/saf\\u{1b}elight")
    }
}

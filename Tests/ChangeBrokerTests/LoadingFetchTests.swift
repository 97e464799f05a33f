import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// A fetch whose keys arrive late has the same result as one that was there from the beginning.
@Suite(.timeLimit(.minutes(1)))
struct LoadingFetchTests {
    private func fetch() throws -> Fetch {
        try Fetch(.assets(.library), sort: [try SortDescriptor("rating", of: .asset)])
    }

    private func asset(_ number: Int, _ rating: Int) -> Asset {
        var asset = Asset(id: RandomEntities.id(.asset, number), revision: Revision(1))
        asset.rating = rating
        return asset
    }

    private func record(_ sequence: Int64, _ number: Int, _ before: Int?, _ after: Int?) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: sequence,
            library: testLibrary,
            date: sequence,
            origin: ChangeOrigin(identity: "uid:1")
        )
        record.assets = [
            EntityChange(before: before.map { asset(number, $0) }, after: after.map { asset(number, $0) })
        ]
        return record
    }

    private func tree(_ fetch: Fetch, _ ratings: [Int: Int]) -> KeyTree {
        let keys = ratings.map { fetch.resultKey(of: asset($0.key, $0.value)).bytes }
        return KeyTree(ascending: keys.sorted { $0.lexicographicallyPrecedes($1) }.map { $0[...] })
    }

    private func update(_ fetches: inout LiveFetches, with record: ChangeRecord) -> LiveFetches.Outcome {
        var work = fetches.work(on: record)
        var all = LiveFetches.Outcome()
        while !work.isDone {
            let outcome = fetches.step(&work)
            all.messages += outcome.messages
            all.broken += outcome.broken
        }
        return all
    }

    @Test func `records before, at and after the moment of the keys lead to the result`() throws {
        for moment in Int64(10)...14 {
            var fetches = LiveFetches()
            let fetch = try fetch()
            let number = fetches.beginLoading(fetch, after: 10)
            #expect(!fetches.isEmpty && fetches.count == 0)
            let records = [
                record(11, 1, 3, 5), record(12, 2, nil, 1), record(13, 3, 2, nil), record(14, 1, 5, 0),
            ]
            for record in records { #expect(update(&fetches, with: record).messages.isEmpty) }
            // The catalog's state at that moment.
            var ratings = [1: 3, 3: 2]
            for record in records where record.sequence <= moment {
                let change = try #require(record.assets.first)
                let changed = ratings.keys.first { RandomEntities.id(.asset, $0) == change.id } ?? 2
                ratings[changed] = change.after?.rating
            }
            #expect(try fetches.finishLoading(number, tree(fetch, ratings), at: moment))
            let added = fetches.add("x", fetch, at: moment)
            let live = try #require(added)
            #expect(live.ids == [RandomEntities.id(.asset, 1), RandomEntities.id(.asset, 2)])
            #expect(update(&fetches, with: record(15, 2, 1, nil)).messages.count == 1)
        }
    }

    @Test func `keys older than the collected changes have to be loaded again`() throws {
        var fetches = LiveFetches()
        let number = fetches.beginLoading(try fetch(), after: 10)
        #expect(try fetches.finishLoading(number, tree(fetch(), [:]), at: 9) == false)
        fetches.cancelLoading(number)
        #expect(fetches.isEmpty)
        #expect(try fetches.finishLoading(number, tree(fetch(), [:]), at: 11) == false, "it is not being loaded")
    }

    @Test func `a log of collected changes that grows too long is given up, and its memory is free again`() throws {
        var fetches = LiveFetches(maxLogBytes: 2000)
        let number = fetches.beginLoading(try fetch(), after: 0)
        for sequence in Int64(1)...100 { _ = update(&fetches, with: record(sequence, 1, 1, 1)) }
        #expect(fetches.logBytes <= 2000)
        #expect(try fetches.finishLoading(number, tree(fetch(), [1: 1]), at: 50) == false)
        fetches.cancelLoading(number)
        #expect(fetches.logBytes == 0)
    }
}

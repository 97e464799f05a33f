import Contracts
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of the time used for retention when the wall clock is wrong.
@Suite(.timeLimit(.minutes(2)))
struct RetentionClockTests {
    private static let second: Int64 = 1_000_000
    private static let hour = 3600 * second
    private static let day = 24 * hour
    private static let start: Int64 = 1_700_000_000 * second

    @Test func `time that passes on both clocks is accepted`() {
        var clock = ClockDiscipline(last: Self.start, monotonic: 5)
        #expect(clock.observe(wall: Self.start + 40 * Self.day, monotonic: 5 + 40 * Self.day) == nil)
        #expect(clock.now == Self.start + 40 * Self.day)
        // A small difference is normal between two clocks.
        #expect(clock.observe(wall: Self.start + 40 * Self.day + 30 * Self.second, monotonic: 5 + 40 * Self.day) == nil)
        #expect(clock.now == Self.start + 40 * Self.day + 30 * Self.second)
    }

    @Test func `a jump ahead is accepted after an hour, and ignored if it is undone before`() {
        for isUndone in [true, false] {
            var clock = ClockDiscipline(last: Self.start, monotonic: 0)
            let jump = 3650 * Self.day
            #expect(clock.observe(wall: Self.start + jump, monotonic: 0) == .ahead(jump))
            #expect(clock.now == Self.start)
            let early = Self.hour - 1
            if isUndone {
                #expect(clock.observe(wall: Self.start + early, monotonic: early) == nil)
                #expect(clock.observe(wall: Self.start + Self.hour, monotonic: Self.hour) == nil)
                #expect(clock.now == Self.start + Self.hour)
            } else {
                #expect(clock.observe(wall: Self.start + jump + early, monotonic: early) == nil)
                #expect(clock.now == Self.start + early)
                #expect(clock.observe(wall: Self.start + jump + Self.hour, monotonic: Self.hour) == .accepted(jump))
                #expect(clock.now == Self.start + jump + Self.hour)
            }
        }
    }

    @Test func `a clock that jumps again must persist for another hour`() {
        var clock = ClockDiscipline(last: Self.start, monotonic: 0)
        #expect(clock.observe(wall: Self.start + 100 * Self.day, monotonic: 0) == .ahead(100 * Self.day))
        let half = Self.hour / 2
        #expect(clock.observe(wall: Self.start + 900 * Self.day + half, monotonic: half) == .ahead(900 * Self.day))
        #expect(clock.observe(wall: Self.start + 900 * Self.day + Self.hour, monotonic: Self.hour) == nil)
        #expect(clock.now == Self.start + Self.hour)
    }

    @Test func `a clock that is behind is accepted after an hour, and extreme values do not overflow`() {
        var clock = ClockDiscipline(last: Self.start, monotonic: 0)
        #expect(clock.observe(wall: Self.start - Self.day, monotonic: 0) == .behind(Self.day))
        #expect(clock.observe(wall: Self.start - Self.day + Self.hour - 1, monotonic: Self.hour - 1) == nil)
        #expect(clock.now == Self.start + Self.hour - 1)
        #expect(clock.observe(wall: Self.start - Self.day + Self.hour, monotonic: Self.hour) == .accepted(-Self.day))
        #expect(clock.now == Self.start - Self.day + Self.hour)
        _ = clock.observe(wall: .max, monotonic: .max)
        _ = clock.observe(wall: .min, monotonic: 0)
        _ = clock.observe(wall: .max, monotonic: 0)
    }

    @Test
    func `after a start with a clock that has jumped ahead, assets and records expire only after an hour`() async throws
    {
        let folder = try TemporaryFolder("clock")
        let (wall, monotonic) = (ManualClock(0), ManualClock(0))
        wall.advance(by: Self.start)
        var environment = CatalogEnvironment()
        environment.now = { wall.now }
        environment.clock = monotonic.clock
        environment.elapsed = monotonic.clock
        let id = try await CatalogFixture.with(folder, environment: environment) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            try await catalog.perform([.trashAssets(.init(ids: [id]))])
            return id
        }
        wall.advance(by: 400 * Self.day)
        try await CatalogFixture.with(folder, environment: environment) {
            $0.trimInterval = 0
        } _: { catalog in
            let service = catalog.service
            #expect(try await !service.writer.perform(.clock).hasMore)
            let trashed = try await service.store.read { try $0.assets.asset(id) }
            #expect(trashed?.trashedDate != nil)
            #expect(try await catalog.call(CurrentToken()).oldest.sequence == 0)
            for clock in [wall, monotonic] { clock.advance(by: Self.hour) }
            while try await service.writer.perform(.clock).hasMore {}
            #expect(try await catalog.assets().isEmpty)
            let stored = try await service.store.read { try $0.assets.asset(id) }
            #expect(stored == nil)
            #expect(try await catalog.call(CurrentToken()).oldest.sequence > 0)
        }
    }

    @Test func `the time for which the machine was suspended counts for retention`() async throws {
        let folder = try TemporaryFolder("suspended")
        let (wall, monotonic, elapsed) = (ManualClock(0), ManualClock(0), ManualClock(0))
        wall.advance(by: Self.start)
        var environment = CatalogEnvironment()
        environment.now = { wall.now }
        environment.clock = monotonic.clock
        environment.elapsed = elapsed.clock
        try await CatalogFixture.with(folder, environment: environment) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            try await catalog.perform([.trashAssets(.init(ids: [id]))])
            for clock in [wall, elapsed] { clock.advance(by: 31 * Self.day) }
            let service = catalog.service
            while try await service.writer.perform(.clock).hasMore {}
            let stored = try await service.store.read { try $0.assets.asset(id) }
            #expect(stored == nil)
        }
    }

    @Test func `assets whose records are large expire in smaller transactions, at the end one by one`() async throws {
        let folder = try TemporaryFolder("large-assets")
        let (wall, monotonic) = (ManualClock(0), ManualClock(0))
        wall.advance(by: Self.start)
        var environment = CatalogEnvironment()
        environment.now = { wall.now }
        environment.clock = monotonic.clock
        environment.elapsed = monotonic.clock
        try await CatalogFixture.with(folder, environment: environment) {
            // A record with one caption fits; a record with a caption before and after a change does not.
            $0.maxRecordBytes = 60_000
        } _: { catalog in
            let ids = try await catalog.importImages([image(1), image(2), image(3)])
            try await catalog.perform([.trashAssets(.init(ids: [ids[0]]))])
            let set = AssetPatch(caption: .some(String(repeating: "x", count: 40_000)))
            for id in ids { try await catalog.perform([.updateAsset(.init(id: .id(id), set: set))]) }
            for clock in [wall, monotonic] { clock.advance(by: 31 * Self.day) }
            let writer = catalog.service.writer
            await ScheduledChanges(writer: writer, interval: .max, logger: CatalogFixture.logger).makeDueChanges()
            let left = try await catalog.everything().assets
            #expect(Set(left.keys) == Set(ids.dropFirst()))
            #expect(left.values.allSatisfy { !$0.isRecentlyAdded })
        }
    }
}

import Contracts
import Foundation
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Live fetches of a real catalog and a real broker, held to fresh fetches of the same moment.
///
/// The short form makes 300 transactions and 60 fetches; `SAFELIGHT_SOAK=50` makes 15,000 and 200.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(3))))
struct LiveFetchTests {
    private static let fetches = min(200, TestEnvironment.rounds(60))
    private static let transactions = min(20_000, TestEnvironment.rounds(300))

    /// A list that is kept current by the messages of its topic alone.
    private struct LiveList {
        let fetch: FetchDescription
        var observation = ""
        var ids: [ObjectID] = []
        var token = ChangeToken.none
        var repaired = 0
    }

    @Test(.spec("S-63", "S-65", "S-67", "S-69", "P-03", "P-04", "P-05", "P-07", "P-08", "P-17", "D6"))
    func `each live result equals the same fetch made afresh, through random transactions`() async throws {
        var random = SeededRandom(named: "live fetches")
        let house = try RunningHouse("live")
        let generated = try RunningProgram.run(
            "catalog",
            ["generate", "--assets", "400", "--albums", "6", "--seed", "\(random.seed % 1000)"],
            environment: house.environment
        )
        #expect(generated.status == 0, "\(generated.errors)")
        try house.start([.catalog, .changeBroker])
        let library = try house.library()
        var ids: [ObjectID] = []
        for try await asset in library.allAssets(FetchDescription(.assets)) { ids.append(asset.id) }
        let collections = try await library.collections(FetchDescription(.collections), count: 1000).collections
        let albums = collections.filter { $0.type == .album }.map(\.id)
        // Smart albums and moments hold what assets say of themselves.
        let derived = collections.filter { $0.type != .album }.map(\.id)
        #expect(ids.count > 300 && albums.count == 6 && derived.count > 20)

        let feed = try Subscriber(
            address: house.address("feed"),
            thread: try PollThread(name: "test-live"),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        await feed.subscribe([FeedTopic.head])
        var lists: [String: LiveList] = [:]
        while lists.count < Self.fetches {
            let fetch = Self.fetch(ids, albums, derived, &random)
            guard (try? Fetch(fetch)) != nil else { continue }
            var list = LiveList(fetch: fetch)
            (list.ids, list.token) = try await Self.fresh(fetch, library)
            let observed = try await library.changeBroker.ask(FetchObserve(fetch: fetch, token: list.token)).result
            list.observation = observed.details.observation
            try Self.take(observed.details, into: &list)
            await feed.subscribe([observed.topic])
            lists[observed.topic] = list
        }
        var messages = feed.messages.makeAsyncIterator()
        for number in 1...Self.transactions {
            let requests = Self.changes(&ids, albums, &random)
            let outcome = try await Self.perform(requests, library)
            guard number % 100 == 0 || number == Self.transactions, let token = outcome else { continue }
            // Heads come after everything at or below them: then every list is where the catalog is.
            while let message = await messages.next() {
                let json = try JSON(parsing: message.frames.first ?? [])
                if message.topic == FeedTopic.head {
                    if try FeedHead(json: json).sequence >= token.sequence { break }
                } else if var list = lists[message.topic] {
                    try await Self.take(json, into: &list, library)
                    lists[message.topic] = list
                }
            }
            for (topic, list) in lists {
                let (wanted, moment) = try await Self.fresh(list.fetch, library)
                #expect(moment == token)
                guard list.ids == wanted else {
                    Issue.record("after \(number), \(list.fetch.json.text): \(list.ids) is not \(wanted)")
                    return
                }
                // Whoever was away since the beginning gets one correct answer too.
                let whole = try await library.changeBroker.ask(
                    FetchDetails(observation: list.observation, token: list.token)
                ).result
                #expect(whole.details == nil && whole.token == token, "\(topic)")
            }
        }
        let figures = try await library.changeBroker.figures()
        let live = figures["feed"]?["fetches"]
        TestPlace.say(
            "live fetches: \(live?["candidates"]?.intValue ?? 0) asked, \(live?["messages"]?.intValue ?? 0) told"
        )
        #expect(live?["broken"] == 0)
        await feed.close()
        await library.close()
        #expect(house.stop() == [])
    }

    // MARK: Parts

    private static func fetch(
        _ ids: [ObjectID],
        _ albums: [ObjectID],
        _ derived: [ObjectID],
        _ random: inout SeededRandom
    ) -> FetchDescription {
        var fetch = FetchDescription(.assets)
        switch Int.random(in: 0..<9, using: &random) {
        case 0: fetch.ids = (0..<8).map { _ in random.pick(ids) }
        case 1, 2, 3: fetch.container = random.pick(albums)
        case 4, 5: fetch.container = random.pick(derived)
        default: break
        }
        let keys = PredicateClass.asset.keys
        switch Int.random(in: 0..<6, using: &random) {
        case 0: break
        case 1: fetch.predicate = "isFavorite == TRUE"
        case 2: fetch.predicate = .string("rating >= \(Int.random(in: 1...4, using: &random))")
        case 3: fetch.predicate = .string("ANY keywords == \"\(random.pick(words))\"")
        case 4: fetch.predicate = .string("rating == \(Int.random(in: 0...5, using: &random)) OR caption != nil")
        default:
            fetch.predicate = RandomEntities.tree(Int.random(in: 1...4, using: &random), of: .asset, using: &random)
        }
        for _ in 0..<Int.random(in: 0...2, using: &random) {
            let key = random.pick(keys.filter(\.isSortable) + [.rating, .isFavorite, .caption, .creationDate])
            fetch.sort.append(SortDescription(key: key.name, ascending: Bool.random(using: &random)))
        }
        if Bool.random(using: &random) { fetch.limit = Int.random(in: 1...30, using: &random) }
        if random.one(in: 3) { fetch.offset = Int.random(in: 1...15, using: &random) }
        if random.one(in: 4) { fetch.includeHidden = true }
        return fetch
    }

    private static let words = ["sea", "hill", "wood"]

    private static func changes(
        _ ids: inout [ObjectID],
        _ albums: [ObjectID],
        _ random: inout SeededRandom
    ) -> [ChangeRequest] {
        (0..<(random.one(in: 4) ? 6 : 1)).map { _ in
            let id = random.pick(ids)
            var patch = AssetPatch()
            switch Int.random(in: 0..<12, using: &random) {
            case 0, 1: patch.isFavorite = Bool.random(using: &random)
            case 2, 3: patch.rating = Int.random(in: 0...5, using: &random)
            case 4: patch.isHidden = Bool.random(using: &random)
            case 5: patch.caption = .some(random.one(in: 3) ? nil : random.pick(RandomEntities.texts))
            case 6: patch.keywords = words.filter { _ in Bool.random(using: &random) }
            case 7: patch.creationDate = .some(1_600_000_000_000_000 + Int64.random(in: 0...9, using: &random))
            case 8, 9:
                return .updateCollection(.init(id: .id(random.pick(albums)), add: [.id(id), .id(random.pick(ids))]))
            case 10: return .updateCollection(.init(id: .id(random.pick(albums)), remove: [id, random.pick(ids)]))
            default:
                guard ids.count > 200, random.one(in: 3) else { break }
                ids.removeAll { $0 == id }
                return .deleteAssets(.init(ids: [id]))
            }
            return .updateAsset(.init(id: .id(id), set: patch))
        }
    }

    private static func perform(_ requests: [ChangeRequest], _ library: PhotoLibrary) async throws -> ChangeToken? {
        do throws(RPCError) {
            return try await library.perform(requests).token
        } catch  where error.refusal == .identifierNotFound {
            // One of its requests deletes what another changes.
            return try await library.currentToken().token
        }
    }

    private static func fresh(_ fetch: FetchDescription, _ library: PhotoLibrary) async throws -> (
        [ObjectID], ChangeToken
    ) {
        do throws(RPCError) {
            let page = try await library.assets(fetch, count: 1000)
            return (page.assets.map(\.id), page.token)
        } catch {
            guard error.refusal == .identifierNotFound else { throw error }
            // A moment goes with its last asset: what it held is nothing now.
            return ([], try await library.currentToken().token)
        }
    }

    private static func take(_ details: FetchDetailsResult, into list: inout LiveList) throws {
        list.token = details.token
        if let changes = details.details { list.ids = try changes.apply(to: list.ids) }
    }

    private static func take(_ json: JSON, into list: inout LiveList, _ library: PhotoLibrary) async throws {
        let sequence = json["sequence"]?.intValue ?? 0
        guard sequence > list.token.sequence else { return }
        guard let previous = json["previous"]?.intValue, previous <= list.token.sequence, let details = json["details"]
        else {
            list.repaired += 1
            let request = FetchDetails(observation: list.observation, token: list.token)
            return try take(try await library.changeBroker.ask(request).result, into: &list)
        }
        list.ids = try ChangeDetails(json: details).apply(to: list.ids)
        list.token = ChangeToken(library: list.token.library, sequence: sequence)
    }
}

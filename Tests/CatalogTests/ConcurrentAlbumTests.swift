import Messaging
import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of many clients that rearrange one album concurrently, compared with a sequential model.
@Suite(.timeLimit(.minutes(5)))
struct ConcurrentAlbumTests {
    /// An acknowledged transaction, with the list that its client had seen.
    private struct Step: Sendable {
        let sequence: Int64
        let seen: [ObjectID]
        let edit: MemberEdit
    }

    /// Returns the list after a step. A member that the step inserts or moves comes after the nearest preceding member
    /// of the client's own list that is still in the album, or at the front if there is none. All other members keep
    /// their order. A member that others have removed is not moved.
    private static func applying(_ step: Step, to current: [ObjectID]) -> [ObjectID] {
        func id(_ reference: ObjectReference) -> ObjectID {
            guard case .id(let id) = reference else { return .none }
            return id
        }
        var desired = step.seen
        var placed: [ObjectID] = []
        switch step.edit {
        case .insert(let members, let at):
            placed = members.map(id)
            desired.removeAll(where: placed.contains)
            for (member, index) in zip(placed, at) { desired.insert(member, at: index) }
        case .move(let from, let to):
            let moved = from.map { desired[$0] }
            desired.removeAll(where: moved.contains)
            desired.insert(contentsOf: moved, at: to)
            placed = moved.filter(current.contains)
        case .replace(let at, let members):
            placed = members.map(id)
            let targets = Set(at)
            for (index, member) in zip(at, placed) { desired[index] = member }
            desired = desired.enumerated().filter { targets.contains($0.offset) || !placed.contains($0.element) }
                .map(\.element)
        case .removeAt(let at): for index in at.reversed() { desired.remove(at: index) }
        case .add(let members): return current + IDList(members.map(id)).ids.filter { !current.contains($0) }
        case .remove(let ids): return current.filter { !ids.contains($0) }
        }
        let removed = Set(step.seen).subtracting(desired)
        var result = current.filter { !removed.contains($0) && !placed.contains($0) }
        for (position, member) in desired.enumerated() where placed.contains(member) {
            let neighbour = desired[..<position].last { result.contains($0) }
            let index = neighbour.flatMap { result.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
            result.insert(member, at: index)
        }
        return result
    }

    private static func edit(_ seen: [ObjectID], _ all: [ObjectID], _ random: inout SeededRandom) -> MemberEdit {
        func indexes(_ count: Int) -> [Int] {
            Array(seen.indices.shuffled(using: &random).prefix(count)).sorted()
        }
        let others = all.filter { !seen.contains($0) }.shuffled(using: &random)
        switch Int.random(in: 0..<7, using: &random) {
        case 0, 1:
            let from = indexes(Int.random(in: 1...3, using: &random))
            return .move(from: from, to: Int.random(in: 0...(seen.count - from.count), using: &random))
        case 2 where !others.isEmpty:
            return .insert([.id(others[0])], at: [Int.random(in: 0...seen.count, using: &random)])
        case 3 where !others.isEmpty: return .replace(at: indexes(1), with: [.id(others[0])])
        case 4 where seen.count > 6: return .removeAt(indexes(1))
        case 5: return .remove([random.pick(all)])
        default: return .add([.id(random.pick(all)), .id(random.pick(all))])
        }
    }

    @Test(.spec("T-24", "T-25", "S-18")) func `albums and folders of the root folder are rearranged like an array`()
        async throws
    {
        let folder = try TemporaryFolder("root")
        var random = SeededRandom(named: "children of the root")
        try await CatalogFixture.with(folder) { catalog in
            let result = try await catalog.perform(
                (0..<10).map { number in
                    number % 3 == 0
                        ? .createList(.init(ref: "r\(number)", title: "\(number)"))
                        : .createCollection(.init(ref: "r\(number)", title: "\(number)"))
                }
            )
            var list = try (0..<10).map { try #require(result.id("r\($0)")) }
            for round in 0..<TestEnvironment.rounds(30) {
                let seen = try await catalog.call(FetchCollections(fetch: FetchDescription(.children)))
                try #require(seen.order == list)
                let from = Array(list.indices.shuffled(using: &random).prefix(Int.random(in: 1...4, using: &random)))
                    .sorted()
                let moved = from.map { list[$0] }
                list.removeAll(where: moved.contains)
                let to = Int.random(in: 0...list.count, using: &random)
                list.insert(contentsOf: moved, at: to)
                var requests: [ChangeRequest] = [
                    .updateList(.init(id: .id(.root), edits: [.move(from: from, to: to)], snapshot: seen.token))
                ]
                // Some transactions delete an album too.
                if round % 7 == 6, let album = list.last(where: { $0.kind == .assetCollection }), list.last == album {
                    requests.append(.deleteCollections(.init(ids: [album])))
                    list.removeLast()
                }
                try await catalog.perform(requests)
            }
            #expect(try await catalog.call(FetchCollections(fetch: FetchDescription(.children))).order == list)
        }
    }

    @Test(.spec("S-84", "S-74", "T-13", "S-71", "P-33"))
    func `eight clients rearrange an album, with the same result as one after the other`() async throws {
        let folder = try TemporaryFolder("eight")
        let seed = SeededRandom(named: "eight clients and an album").seed
        try await CatalogFixture.with(folder) { catalog in
            let all = try await catalog.importImages((1...24).map { image($0) })
            let result = try await catalog.perform([
                .createCollection(.init(ref: "c", title: "A", add: all.prefix(14).map { .id($0) }))
            ])
            let album = try #require(result.id("c"))
            var members = FetchDescription(.assets)
            members.container = album
            let fetch = members
            let steps = try await withThrowingTaskGroup(of: [Step].self) { group in
                for client in 0..<8 {
                    let connection = try catalog.connect()
                    var random = SeededRandom(seed: seed &+ UInt64(client))
                    group.addTask {
                        var steps: [Step] = []
                        for _ in 0..<TestEnvironment.rounds(20) {
                            let page = try await connection.call(
                                FetchAssets.method,
                                FetchAssets(fetch: fetch, count: 100).json
                            ).result
                            let seen = try FetchAssets.Result(json: page)
                            let list = seen.assets.map(\.id)
                            guard list.count > 4 else { continue }
                            let edit = Self.edit(list, all, &random)
                            let update = ChangeRequest.updateCollection(
                                .init(id: .id(album), edits: [edit], snapshot: edit.hasIndexes ? seen.token : nil)
                            )
                            let answer = try await connection.call(
                                PerformChanges.method,
                                PerformChanges(requests: [update], client: "c\(client)").json
                            ).result
                            let result = try PerformChanges.Result(json: answer)
                            guard result.isChanged else { continue }
                            steps.append(Step(sequence: result.sequence, seen: list, edit: edit))
                        }
                        return steps
                    }
                }
                return try await group.reduce(into: [Step]()) { $0 += $1 }
            }
            var model = Array(all.prefix(14))
            for step in steps.sorted(by: { $0.sequence < $1.sequence }) { model = Self.applying(step, to: model) }
            #expect(try await catalog.assets(fetch).map(\.id) == model)
            #expect(steps.count > 40 && Set(steps.map(\.sequence)).count == steps.count)
            // Each transaction has its own sequence number, and none is missing.
            let records = try await catalog.history()
            #expect(records.map(\.sequence) == Array(1...Int64(records.count)))
            #expect(try await catalog.collections().first?.estimatedAssetCount == model.count)
        }
    }
}

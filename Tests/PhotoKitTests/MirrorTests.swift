import Foundation
import PhotoKit
import Synchronization
import TestSupport
import Testing

/// A list that applies change details to remain equal to a fetch result, as a list view does.
private final class Mirror: PHPhotoLibraryChangeObserver {
    struct State: Sendable {
        var result: PHFetchResult<PHAsset>
        var ids: [String]
        var favorites: Set<String>
        var changes = 0
        var reloads = 0
        var problem: String?
    }

    let state: Mutex<State>
    let arrivals = Recorded<String?>()

    init(_ result: PHFetchResult<PHAsset>) {
        state = Mutex(
            State(
                result: result,
                ids: result.map(\.localIdentifier),
                favorites: Set(result.filter(\.isFavorite).map(\.localIdentifier))
            )
        )
    }

    func photoLibraryDidChange(_ changeInstance: PHChange) {
        let caption = state.withLock { state -> String?? in
            guard let details = changeInstance.changeDetails(for: state.result) else { return .none }
            Self.apply(details, to: &state)
            return .some(state.result.lastObject?.caption)
        }
        if let caption { arrivals.add(caption) }
    }

    private static func apply(_ details: PHFetchResultChangeDetails<PHAsset>, to state: inout State) {
        state.result = details.fetchResultAfterChanges
        state.changes += 1
        guard let removed = details.removedIndexes, let inserted = details.insertedIndexes else {
            state.reloads += 1
            state.ids = state.result.map(\.localIdentifier)
            state.favorites = Set(state.result.filter(\.isFavorite).map(\.localIdentifier))
            return
        }
        for index in removed.reversed() { state.favorites.remove(state.ids.remove(at: index)) }
        for (index, object) in zip(inserted, details.insertedObjects) {
            state.ids.insert(object.localIdentifier, at: index)
            if object.isFavorite { state.favorites.insert(object.localIdentifier) }
        }
        for object in details.changedObjects {
            if object.isFavorite {
                state.favorites.insert(object.localIdentifier)
            } else {
                state.favorites.remove(object.localIdentifier)
            }
        }
        let middle = state.ids
        details.enumerateMoves { state.ids[$1] = middle[$0] }
        if state.ids.count != state.result.count { state.problem = "\(state.ids.count) of \(state.result.count)" }
    }
}

extension PhotoKitTests {
    @Suite(.serialized, .timeLimit(.minutes(5)))
    struct Mirrors {
        /// 60 s with `SAFELIGHT_SOAK`, else 6 s.
        private static let seconds = TestEnvironment.rounds(1) > 1 ? 60.0 : 6.0

        @Test(.spec("S-63", "S-67", "S-70", "S-72", "P-03", "P-05"))
        func `a list that applies change details equals the fetch result while services are killed`() async throws {
            try await LibraryFixture.with("mirror", services: [.catalog, .changeBroker], generated: 200) { fixture in
                let options = PHFetchOptions()
                options.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: false)]
                let mirror = Mirror(PHAsset.fetchAssets(with: options))
                let library = PHPhotoLibrary.shared()
                library.register(mirror)
                let ends = Recorded<Bool>()
                let (writes, kills) = try await withThrowingTaskGroup(of: Int.self) { group in
                    group.addTask {
                        var random = SeededRandom(named: "mirrored changes")
                        var writes = 0
                        while ends.all.isEmpty {
                            try await Self.change(&random)
                            writes += 1
                        }
                        return writes
                    }
                    var kills = 0
                    let end = Date().addingTimeInterval(Self.seconds)
                    while Date() < end {
                        try await Task.sleep(for: .milliseconds(700))
                        try fixture.restart(kills % 3 == 2 ? .catalog : .changeBroker)
                        kills += 1
                    }
                    ends.add(true)
                    return (try await group.next() ?? 0, kills)
                }
                // A last change, which the mirror must reach.
                let oldest = try #require(PHAsset.fetchAssets(with: options).lastObject)
                try await library.performChanges { PHAssetChangeRequest(for: oldest).caption = "the end" }
                while let caption = await mirror.arrivals.next(), caption != "the end" {}
                let state = mirror.state.withLock { $0 }
                let fresh = PHAsset.fetchAssets(with: options)
                #expect(state.problem == nil)
                #expect(state.ids == fresh.map(\.localIdentifier))
                #expect(state.favorites == Set(fresh.filter(\.isFavorite).map(\.localIdentifier)))
                #expect(state.reloads == 0)
                TestPaths.report(
                    "mirror: \(writes) transactions, \(state.changes) changes observed, \(kills) kills, "
                        + "\(fresh.count) assets"
                )
                #expect(writes > 10 && kills > 3)
            }
        }

        /// Performs a random change: of a date or a flag, a deletion, or a creation.
        private static func change(_ random: inout SeededRandom) async throws {
            let options = PHFetchOptions()
            options.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: false)]
            let all = try await PHAsset.assets(with: options)
            let some = try await all.objects(in: 0..<min(all.count, 60))
            let (first, second) = (some.randomElement(using: &random), some.randomElement(using: &random))
            let kind = Int.random(in: 0..<8, using: &random)
            let seed = UInt64.random(in: 1...1_000_000, using: &random)
            let days = Double.random(in: -2000...0, using: &random)
            try await PHPhotoLibrary.shared().performChanges {
                guard let first, let second else { return }
                switch kind {
                case 0: PHAssetChangeRequest.deleteAssets([first])
                case 1, 2:
                    let bytes = TestImages.jpeg(width: 64, height: 48, date: "2025:01:01 12:00:00", seed: seed)
                    guard let image = UIImage(data: Data(bytes)) else { return }
                    PHAssetChangeRequest.creationRequestForAsset(from: image).isFavorite = true
                case 3, 4: PHAssetChangeRequest(for: first).creationDate = Date(timeIntervalSinceNow: days * 86_400)
                case 5:
                    PHAssetChangeRequest(for: first).isHidden = true
                    if first != second { PHAssetChangeRequest(for: second).isFavorite = true }
                default: PHAssetChangeRequest(for: first).isFavorite.toggle()
                }
            }
        }
    }
}

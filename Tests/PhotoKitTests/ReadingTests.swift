import Foundation
import PhotoKit
import TestSupport
import Testing

extension PhotoKitTests {
    /// Results whose pages the library no longer returns completely.
    @Suite(.serialized, .timeLimit(.minutes(5)))
    struct Reading {
        /// The number of objects in a page of a fetch result.
        private static let pageSize = 256

        @Test(.spec("S-10", "S-26", "S-27", "S-29", "T-36"))
        func `after access was revoked, loops end early with an error, and asynchronous forms throw it`() async throws {
            let network = try NetworkFixture("pk-revoked", generated: 600)
            let services = network.services
            let configuration = try network.configuration(
                key: "ann",
                access: "readWrite",
                client: "ann's program",
                purpose: "shows photos"
            )
            let library = try PHPhotoLibrary.connect(configuration)
            let photos = PHAsset.fetchAssets(with: nil)
            try #require(photos.count > 2 * Self.pageSize)
            let start = library.currentChangeToken
            let captioned = try #require(photos.firstObject)
            for number in 1...120 {
                try library.performChangesAndWait { PHAssetChangeRequest(for: captioned).caption = "\(number)" }
            }
            let changes = try await library.persistentChanges(since: start)
            var (objects, transactions) = (photos.makeIterator(), changes.makeIterator())
            let (first, transaction) = (objects.next(), transactions.next())
            #expect(first == captioned && transaction != nil)
            #expect(photos.error == nil && changes.error == nil)
            try #require(try services.safelight(["grants", "revoke", "ann"]).status == 0)

            // A cached page can be read to its end.
            var (objectCount, transactionCount) = (1, 1)
            while objects.next() != nil { objectCount += 1 }
            while transactions.next() != nil { transactionCount += 1 }
            #expect(objectCount == Self.pageSize && transactionCount == 100)
            #expect(photos.error?.code == .accessUserDenied && changes.error?.code == .accessUserDenied)

            #expect(Array(photos).count == Self.pageSize && photos.map(\.localIdentifier).count == Self.pageSize)
            #expect(photos.firstObject == first && photos.lastObject == nil)
            #expect(photos.first == first && photos.last == nil)
            #expect(photos.objects(at: [0, 300, 301]) == [captioned])
            #expect(photos.index(of: captioned) == NSNotFound && photos.countOfAssets(with: .image) == 0)
            var indexes: [Int] = []
            photos.enumerateObjects(at: [1, 2, 300]) { _, index, _ in indexes.append(index) }
            photos.enumerateObjects(options: .reverse) { _, index, _ in indexes.append(index) }
            #expect(indexes == [1, 2])
            var enumerated = 0
            changes.enumerateChanges { _, _ in enumerated += 1 }
            #expect(enumerated == 0)

            var count = 0
            do {
                for try await _ in photos.objects() { count += 1 }
                Issue.record("all objects were read without access")
            } catch PHPhotosError.accessUserDenied {
                #expect(count == Self.pageSize)
            }
            do {
                for try await _ in changes.changes() { count += 1 }
                Issue.record("all transactions were read without access")
            } catch PHPhotosError.accessUserDenied {
                #expect(count == Self.pageSize)
            }
            let refused = await #expect(throws: PHPhotosError.self) { try await photos.objects(in: 300..<301) }
            #expect(refused?.code == .accessUserDenied)
            await #expect(throws: PHPhotosError.self) { try await library.persistentChanges(since: start) }

            // With access again, the same results can be read to their ends.
            try #require(try services.safelight(["grants", "approve", "ann", "--access", "readWrite"]).status == 0)
            #expect(Array(photos).count == photos.count && photos.lastObject != nil)
            (count, transactionCount) = (0, 0)
            for try await _ in photos.objects() { count += 1 }
            for try await _ in changes.changes() { transactionCount += 1 }
            #expect(count == photos.count && transactionCount == 120 && Array(changes).count == 120)
            var token = start
            var identifiers: Set<String> = []
            do {
                let changes = try await library.persistentChanges(since: token)
                for try await change in changes.changes() {
                    identifiers.formUnion(try change.changeDetails(for: .asset).updatedLocalIdentifiers)
                    token = change.changeToken
                }
            }
            #expect(identifiers == [captioned.localIdentifier] && token != start)
            await library.close()
            #expect(network.services.stop() == [])
        }

        @Test(.spec("S-25", "S-67", "T-36"))
        func `after the library was closed, results return cached pages, and errors for others`() async throws {
            try await LibraryFixture.with("closed-pages", services: [.catalog], generated: 600) { fixture in
                let library = try PHPhotoLibrary.connect(LibraryFixture.configuration(of: fixture))
                let photos = PHAsset.fetchAssets(with: nil)
                try #require(photos.count > 2 * Self.pageSize)
                let start = library.currentChangeToken
                let deleted = PHAsset.fetchAssets(with: nil)[400]
                try library.performChangesAndWait { PHAssetChangeRequest.deleteAssets([deleted]) }
                let details = PHFetchResultChangeDetails(from: photos, to: PHAsset.fetchAssets(with: nil))
                #expect(details.removedIndexes == [400])
                let changes = try library.fetchPersistentChanges(since: start)
                #expect(Array(changes).count == 1 && changes.error == nil)
                await library.close()

                #expect(Array(photos).count == Self.pageSize && photos.error != nil)
                #expect(details.removedObjects.isEmpty)
                let some = PHAssetCollection.transientAssetCollection(withAssetFetchResult: photos, title: nil)
                #expect(some.estimatedAssetCount == Self.pageSize)
                #expect(Array(changes).isEmpty && changes.error != nil)
                await #expect(throws: PHPhotosError.self) { try await photos.objects(in: 0..<photos.count) }
                await #expect(throws: PHPhotosError.self) { for try await _ in changes.changes() {} }
            }
        }

        @Test(.spec("S-25", "S-73"))
        func `a change of a result that cannot be read to its end fails as a whole`() async throws {
            try await LibraryFixture.with("no-moment", services: [.catalog], generated: 400) { fixture in
                let library = PHPhotoLibrary.shared()
                let options = PHFetchOptions()
                options.predicate = NSPredicate(format: "isLocal == YES")
                let photos = PHAsset.fetchAssets(with: options)
                try #require(photos.count > Self.pageSize)
                let first = try #require(photos.firstObject)
                // The history does not contain such a result: after a restart and a change its next page is unknown.
                try fixture.restart(.catalog)
                try library.performChangesAndWait { PHAssetChangeRequest(for: first).isFavorite.toggle() }
                #expect(Array(photos).count == Self.pageSize)
                #expect(photos.error?.code == .persistentChangeTokenExpired)

                let count = PHAsset.fetchAssets(with: nil).count
                let refused = #expect(throws: PHPhotosError.self) {
                    try library.performChangesAndWait { PHAssetChangeRequest.deleteAssets(photos) }
                }
                #expect(refused?.code == .persistentChangeTokenExpired)
                #expect(PHAsset.fetchAssets(with: nil).count == count)
                let incomplete = #expect(throws: PHPhotosError.self) {
                    try library.performChangesAndWait {
                        let album = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: "All")
                        album.addAssets(photos)
                    }
                }
                #expect(incomplete?.code == .persistentChangeTokenExpired)
            }
        }

        @Test(.spec("S-26"))
        func `an object that must be returned and cannot be read stops the program with the reason`() async throws {
            try await LibraryFixture.with("no-object", services: [.catalog], generated: 600) { fixture in
                // The closure runs in its own process, which inherits the variable.
                setenv("SAFELIGHT_RUN", fixture.folder.file("run"), 1)
                let ended = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                    let photos = PHAsset.fetchAssets(with: nil)
                    guard photos.count > 300 else { exit(0) }
                    await PHPhotoLibrary.shared().close()
                    for index in photos.indices { _ = photos[index] }
                    exit(0)
                }
                unsetenv("SAFELIGHT_RUN")
                let message = String(decoding: ended?.standardErrorContent ?? [], as: UTF8.self)
                #expect(message.contains("PHFetchResult: object 256 cannot be read: "), "\(message)")
            }
        }

        @Test(.spec("S-27", "T-42"))
        func `a read of a page waits until the library's folder is moved back`() async throws {
            try await LibraryFixture.with("moved-page", services: [.catalog], generated: 600) { fixture in
                let photos = PHAsset.fetchAssets(with: nil)
                try #require(photos.count > Self.pageSize)
                let (folder, moved) = (fixture.folder.file("library"), fixture.folder.file("moved"))
                #expect(rename(folder, moved) == 0)
                while PHAsset.fetchAssets(with: nil).error?.code != .relinquishingLibraryBundleToWriter,
                    !Task.isCancelled
                {
                    await Task.yield()
                }
                let read = Recorded<String?>()
                DispatchQueue.global().async { read.add(photos.lastObject?.localIdentifier) }
                try await Task.sleep(for: .seconds(1))
                #expect(read.all.isEmpty)
                #expect(rename(moved, folder) == 0)
                let last = try #require(await read.next())
                #expect(last != nil && photos.error == nil)
            }
        }
    }
}

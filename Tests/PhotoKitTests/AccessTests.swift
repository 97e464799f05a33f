import Foundation
import PhotoKit
import TestSupport
import Testing

/// Records each change of the library's availability.
private final class AvailabilityRecorder: PHPhotoLibraryAvailabilityObserver {
    let events = Recorded<String>()

    func photoLibraryDidBecomeUnavailable(_ photoLibrary: PHPhotoLibrary) {
        events.add(photoLibrary.unavailabilityReason == nil ? "unavailable without a reason" : "unavailable")
    }

    func photoLibraryDidBecomeAvailable(_ photoLibrary: PHPhotoLibrary) { events.add("available") }
}

extension PhotoKitTests {
    @Suite(.serialized, .timeLimit(.minutes(5)))
    struct Access {
        @Test(arguments: ["photos:99999", "photos:65531", "photos:0", "photos:", "photos:x", "[::1]:x"])
        func `a host with a port that does not exist is refused`(host: String) {
            var configuration = PHPhotoLibrary.Configuration(runFolder: "/", client: "test", purpose: "test")
            configuration.host = host
            let refused = configuration
            #expect(throws: PHPhotosError.self) { try PHPhotoLibrary.connect(refused) }
        }

        @Test(.spec("S-10", "S-11", "S-12"))
        func `over the network a program asks the owner for access`() async throws {
            let network = try NetworkFixture("pk-tcp")
            let services = network.services
            let configuration = try network.configuration(
                key: "ann",
                access: "ask",
                client: "ann's program",
                purpose: "shows photos"
            )
            let library = try PHPhotoLibrary.connect(configuration)
            #expect(PHPhotoLibrary.authorizationStatus() == .notDetermined)
            #expect(PHAsset.fetchAssets(with: nil).error?.name == "not_determined")
            let recorder = AvailabilityRecorder()
            library.register(recorder)
            let decided = Recorded<PHAuthorizationStatus>()
            PHPhotoLibrary.requestAuthorization(for: .readWrite) { decided.add($0) }
            while try !services.safelight(["grants"]).output.contains("shows photos"), !Task.isCancelled {
                await Task.yield()
            }
            #expect(decided.all.isEmpty)
            #expect(try services.safelight(["grants", "approve", "ann", "--access", "readWrite"]).status == 0)
            #expect(await decided.next() == .authorized)
            #expect(PHPhotoLibrary.authorizationStatus() == .authorized)
            // Without access, the state of the library was unknown.
            #expect(recorder.events.all.isEmpty && library.unavailabilityReason == nil)
            library.unregisterAvailabilityObserver(recorder)
            let result = PHAsset.fetchAssets(with: nil)
            #expect(result.error == nil && result.isEmpty)
            #expect(try services.safelight(["grants", "revoke", "ann"]).status == 0)
            #expect(PHPhotoLibrary.authorizationStatus() == .denied)
            #expect(PHAsset.fetchAssets(with: nil).error?.code == .accessUserDenied)
            await library.close()
            #expect(await PHPhotoLibrary.requestAuthorization(for: .readWrite) == .notDetermined)
            #expect(network.services.stop() == [])
        }

        @Test(.spec("T-42"))
        func `observers are notified when the library becomes unavailable and available again`() async throws {
            try await LibraryFixture.with("lost", services: [.catalog]) { fixture in
                let recorder = AvailabilityRecorder()
                let library = PHPhotoLibrary.shared()
                #expect(PHAsset.fetchAssets(with: nil).error == nil)
                library.register(recorder)
                // A restart that ends before the observer requests the status is not noticed.
                while recorder.events.all.isEmpty { try fixture.restart(.catalog) }
                #expect(await recorder.events.next() == "unavailable")
                #expect(await recorder.events.next() == "available")
                #expect(library.unavailabilityReason == nil)
                library.unregisterAvailabilityObserver(recorder)
            }
        }

        @Test(.spec("T-42"))
        func `observers are notified when the library's folder is moved away and back`() async throws {
            try await LibraryFixture.with("moved", services: [.catalog]) { fixture in
                let recorder = AvailabilityRecorder()
                let library = PHPhotoLibrary.shared()
                library.register(recorder)
                let (folder, moved) = (fixture.folder.file("library"), fixture.folder.file("moved"))
                #expect(rename(folder, moved) == 0)
                #expect(await recorder.events.next() == "unavailable")
                let reason = library.unavailabilityReason as? PHPhotosError
                #expect(reason?.code == .relinquishingLibraryBundleToWriter)
                #expect(PHAsset.fetchAssets(with: nil).error?.code == .relinquishingLibraryBundleToWriter)
                #expect(rename(moved, folder) == 0)
                #expect(await recorder.events.next() == "available")
                #expect(library.unavailabilityReason == nil)
                let result = PHAsset.fetchAssets(with: nil)
                #expect(result.error == nil && result.isEmpty)
                library.unregisterAvailabilityObserver(recorder)
            }
        }
    }
}

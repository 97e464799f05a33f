import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A library whose folder is missing, read-only, full or locked for a while (T-42): `library.status` and the topic
/// `availability` report the name of the state, and all requests that it affects have the same error.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct AvailabilityTests {
    private static func writePhotos(_ folder: TemporaryFolder) throws {
        for seed in 1...3 {
            try folder.write(TestImages.jpeg(width: 64, height: 48, seed: UInt64(seed)), to: "\(seed).jpg")
        }
        try folder.write(TestImages.jpeg(width: 1200, height: 900, seed: 9), to: "big.jpg")
    }

    @Test(.spec("T-42"))
    func `a library that is moved, replaced or locked is reported, and works again without a restart`() throws {
        let services = try SafelightFixture("availability")
        try Self.writePhotos(services.folder)
        try services.start()
        try RowScript.run(
            "availability.py",
            services,
            parts: [
                "folder_renamed_away", "another_library_is_being_restored", "waiting_for_a_status", "database_locked",
            ]
        )
        #expect(services.stop() == [])
    }

    private static func waitForHealth(_ services: SafelightFixture) async throws {
        for service in ["catalog", "thumbnailer", "editor"] {
            try await waitUntil("the \(service) is healthy") {
                (try? services.safelight(["status", service]).status) == 0
            }
        }
    }

    @Test(.spec("T-42"), .onlySQLite)
    func `a library whose disk comes back as another device is opened by the services as they run`() async throws {
        let folder = try TemporaryFolder("device")
        let (disk, copy) = (folder.file("disk"), folder.file("copy"))
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
        func attach() -> Bool { mount("tmpfs", disk, "tmpfs", 0, "size=24m") == 0 }
        let isMounted = attach()
        defer { for _ in 1...2 { umount2(disk, 2) } }
        _ = try Needed.found(isMounted ? true : nil, "the privilege to mount a small disk (root)")
        let services = try SafelightFixture("device-services", environment: ["SAFELIGHT_LIBRARY": disk + "/library"])
        try Self.writePhotos(services.folder)
        let up = try RunningProgram("safelight", ["up", "--ready-fd", "1"], environment: services.environment)
        defer { up.killHard() }
        try #require(up.waitForOutput("ready"), "\(up.errorText)")
        try #require(try services.safelight(["import", services.folder.file("1.jpg")]).status == 0)
        let library = try services.library()
        let id = try #require(try await library.assets(FetchDescription(.assets)).assets.first?.id)

        try FileManager.default.copyItem(atPath: disk + "/library", toPath: copy)
        #expect(umount2(disk, 2) == 0)
        try await waitUntil("the volume is missed") {
            (try? services.safelight(["status", "thumbnailer"]).status) != 0
        }
        try #require(attach())
        try FileManager.default.copyItem(atPath: copy, toPath: disk + "/incomplete")
        try #require(rename(disk + "/incomplete", disk + "/library") == 0)
        try await Self.waitForHealth(services)
        let image = ImageRequest(asset: id, targetSize: .size(width: 40, height: 30))
        try await waitUntil("the library is shown") { (try? await library.image(image)) != nil }
        await library.close()
        up.signal(SIGTERM)
        #expect(up.wait(seconds: 30) == 0, "\(up.errorText)")
    }

    @Test(.spec("T-42"))
    func `a library restored to the place of another is opened by the services as they run`() async throws {
        let services = try SafelightFixture("availability-restore")
        try Self.writePhotos(services.folder)
        let up = try RunningProgram("safelight", ["up", "--ready-fd", "1"], environment: services.environment)
        defer { up.killHard() }
        try #require(up.waitForOutput("ready"), "\(up.errorText)")
        try #require(try services.safelight(["import", services.folder.file("1.jpg")]).status == 0)
        let (path, backup) = (services.folder.file("library"), services.folder.file("backup"))
        try #require(try services.safelight(["backup", backup]).status == 0)
        // This change is not in the backup.
        try #require(try services.safelight(["import", services.folder.file("2.jpg")]).status == 0)
        let library = try services.library()
        let before = try await library.currentToken().token
        try #require(rename(path, services.folder.file("aside")) == 0)
        let restored = try services.safelight(["restore", backup, "--library", path])
        #expect(restored.status == 0, "\(restored.errors)")

        // A client waits for the other history, which begins above the sequences of this one.
        var now = before
        try await waitUntil("the restored library is open") {
            now = (try? await library.currentToken().token) ?? before
            return now.library != before.library
        }
        #expect(now.sequence > before.sequence)
        let assets = try await library.assets(FetchDescription(.assets)).assets
        #expect(assets.map(\.originalFilename) == ["1.jpg"])
        // The other services follow.
        let id = try #require(assets.first?.id)
        let image = ImageRequest(asset: id, targetSize: .size(width: 40, height: 30))
        try await waitUntil("the restored library is shown") { (try? await library.image(image)) != nil }
        try await Self.waitForHealth(services)
        await library.close()
        up.signal(SIGTERM)
        #expect(up.wait(seconds: 30) == 0, "\(up.errorText)")
        #expect(up.errorText.contains("another library is in the folder"))
    }

    @Test(.spec("T-42"))
    func `a library whose files cannot be written is read-only until they can`() throws {
        let services = try SafelightFixture("availability-files")
        let folder = services.folder.file("immutable")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let chattr = try Needed.program("chattr")
        let isAllowed = try RunningProgram.run(chattr, ["+i", folder]).status == 0
        _ = try RunningProgram.run(chattr, ["-i", folder])
        _ = try Needed.found(isAllowed ? true : nil, "the privilege to make a folder immutable (root)")
        try Self.writePhotos(services.folder)
        try services.start()
        try RowScript.run("availability.py", services, parts: ["resources_not_writable"])
        #expect(services.stop() == [])
    }

    @Test(.spec("T-42"))
    func `a volume that is missing, read-only or full is reported, and works again without a restart`() throws {
        let folder = try TemporaryFolder("volume")
        let (volume, disk) = (folder.file("volume"), folder.file("disk"))
        for path in [volume, disk] {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        let isMounted =
            mount("tmpfs", volume, "tmpfs", 0, "size=24m") == 0 && mount(volume, disk, nil, UInt(MS_BIND), nil) == 0
        defer { for path in [disk, disk, volume] { umount2(path, 2) } }
        _ = try Needed.found(isMounted ? true : nil, "the privilege to mount a small disk (root)")
        let services = try SafelightFixture(
            "availability-volume",
            environment: ["SAFELIGHT_LIBRARY": disk + "/library", "VOLUME": volume]
        )
        try Self.writePhotos(services.folder)
        try services.start()
        try RowScript.run(
            "availability.py",
            services,
            parts: ["volume_unmounted", "filesystem_read_only", "disk_full"]
        )
        #expect(services.stop() == [])
    }
}

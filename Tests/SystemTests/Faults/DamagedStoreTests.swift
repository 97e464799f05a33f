import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Stored files that the disk damaged, and their repair by importing good bytes again.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct DamagedStoreTests {
    private static let good = TestImages.jpeg(width: 64, height: 48, seed: 1)

    /// Changes a byte in the middle of a file in place. The size stays, and with `keepsTimes` the timestamps too.
    private static func damage(_ path: String, keepsTimes: Bool) throws {
        var status = stat()
        #expect(stat(path, &status) == 0)
        chmod(path, 0o644)
        let file = open(path, O_RDWR)
        var byte: [UInt8] = [0]
        pread(file, &byte, 1, off_t(status.st_size / 2))
        byte[0] ^= 0xFF
        #expect(pwrite(file, byte, 1, off_t(status.st_size / 2)) == 1)
        if keepsTimes {
            var times = [status.st_atim, status.st_mtim]
            #expect(futimens(file, &times) == 0)
        }
        close(file)
    }

    private static func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

    private static func create(_ path: String, isMoved: Bool = false) -> ChangeRequest {
        .createAsset(.init(ref: "p", resources: [NewResource(source: .path(path), isMoved: isMoved)]))
    }

    @Test(.spec("T-21"))
    func `a move keeps its source file until the stored copy is repaired, and reports the repair`() async throws {
        let services = try SafelightFixture("move")
        try services.start([.catalog])
        let library = try services.library()
        let first = try services.folder.write(Self.good, to: "in/first.jpg")
        _ = try await library.perform([Self.create(first)])
        let stored = try #require(try services.storedFiles.first)
        try Self.damage(stored, keepsTimes: true)

        let second = try services.folder.write(Self.good, to: "in/second.jpg")
        let moved = try await library.perform([Self.create(second, isMoved: true)])
        #expect(try Self.bytes(stored) == Self.good, "the last good copy must not be removed")
        #expect(access(second, F_OK) != 0)
        #expect(moved.healed == [(stored as NSString).lastPathComponent] && moved.duplicates == ["p"])
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `importing a file again repairs a modified copy, and with verify one damaged without a trace`()
        async throws
    {
        let services = try SafelightFixture("heal")
        try services.start([.catalog])
        let file = try services.folder.write(Self.good, to: "in/one.jpg")
        #expect(try services.safelight(["import", file]).status == 0)
        let stored = try #require(try services.storedFiles.first)

        try Self.damage(stored, keepsTimes: false)
        let plain = try services.safelight(["import", file])
        #expect(plain.status == 0 && plain.output.contains("1 damaged and replaced"), "\(plain.output)")
        #expect(try Self.bytes(stored) == Self.good)

        try Self.damage(stored, keepsTimes: true)
        let unnoticed = try services.safelight(["import", file])
        #expect(unnoticed.output.contains("1 already there") && !unnoticed.output.contains("damaged"))
        let verified = try services.safelight(["import", "--verify", "--json", file])
        let lines = try verified.output.split(separator: "\n").map { try JSON(parsing: String($0)) }
        #expect(lines.first?["outcome"] == "duplicate" && lines.first?["healed"] == true, "\(verified.output)")
        #expect(lines.last?["summary"]?["healed"] == 1)
        #expect(try Self.bytes(stored) == Self.good)

        // Damage found by a deep check is recorded, and a later import without verify repairs it.
        try Self.damage(stored, keepsTimes: true)
        #expect(try services.safelight(["doctor", "--deep"]).status == 2)
        #expect(try services.safelight(["import", file]).output.contains("1 damaged and replaced"))
        #expect(try Self.bytes(stored) == Self.good)
        // A missing file is repaired alike.
        try FileManager.default.removeItem(atPath: stored)
        #expect(try services.safelight(["import", file]).output.contains("1 damaged and replaced"))
        #expect(try Self.bytes(stored) == Self.good)
        #expect(try services.safelight(["import", file]).output.contains("damaged") == false)
        #expect(try services.safelight(["doctor", "--deep"]).output.contains("their content is unchanged"))
        #expect(services.stop() == [])
    }

    @Test func `an upload or an attachment repairs a file that a failed read found damaged`() async throws {
        let services = try SafelightFixture("upload")
        try services.start([.catalog])
        let library = try services.library()
        let result = try await library.perform(
            [.createAsset(.init(ref: "p", resources: [NewResource(source: .attachment(0))]))],
            attachments: [Self.good]
        )
        let id = try #require(result.id("p"))
        let stored = try #require(try services.storedFiles.first)

        try Self.damage(stored, keepsTimes: true)
        let refused = await #expect(throws: RPCError.self) {
            try await library.catalog.ask(ReadResource(asset: id, type: .photo))
        }
        #expect(refused?.errorCode == .resourceChanged)
        func upload(verifies: Bool = false) async throws -> Bool {
            let name = try await library.catalog.ask(BeginUpload()).result.upload
            _ = try await library.catalog.ask(AppendUpload(upload: name, offset: 0), attachments: [Self.good])
            return try await library.catalog.ask(FinishUpload(upload: name, verifies: verifies)).result.isHealed
        }
        #expect(try await upload())
        #expect(try Self.bytes(stored) == Self.good)
        #expect(try await !upload())

        try Self.damage(stored, keepsTimes: true)
        #expect(try await upload(verifies: true))
        try Self.damage(stored, keepsTimes: false)
        let again = try await library.perform(
            [.createAsset(.init(ref: "p", resources: [NewResource(source: .attachment(0))]))],
            attachments: [Self.good]
        )
        #expect(again.healed.count == 1 && again.id("p") == id)
        #expect(try Self.bytes(stored) == Self.good)
        #expect(try await library.resource(asset: id).readAll(limit: 1 << 20) == Self.good)
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a start with missing library files logs one line, and doctor lists the files`()
        async throws
    {
        let sqlite = try Needed.program("sqlite3")
        let services = try SafelightFixture("away", environment: ["SAFELIGHT_COLLECT_AFTER_SECONDS": "3600"])
        for seed in 1...20 {
            try services.folder.write(TestImages.jpeg(width: 32, height: 24, seed: UInt64(seed)), to: "p/\(seed).jpg")
        }
        try services.start([.catalog])
        #expect(try services.safelight(["import", services.folder.file("p")]).status == 0)
        #expect(services.stop() == [])
        // Resets the scan position, as if the catalog was killed before it saved it.
        let database = services.folder.file("library/library.sqlite")
        let run = try RunningProgram.run(sqlite, [database, "DELETE FROM counter WHERE name = 'examined'"])
        #expect(run.status == 0, "\(run.errors)")
        let files = try services.storedFiles
        #expect(files.count == 20)
        for file in files { unlink(file) }

        try services.start([.catalog])
        let library = try services.library()
        let head = try await library.currentToken().token.sequence
        try await waitUntil("all files are examined") {
            try await library.catalog.metrics()["examiner"]?["sequence"] == .int(head)
        }
        await library.close()
        #expect(services.stop() == [])
        let log = services.program(.catalog)?.errorText ?? ""
        let lines = log.split(separator: "\n").filter { $0.contains("checked for damage") }
        #expect(lines.count == 1 && lines.first?.contains("20") == true, "\(log)")
        let doctor = try services.safelight(["doctor"])
        #expect(doctor.output.contains("20 files of assets are missing"), "\(doctor.output)")
        let name = (files[0] as NSString).lastPathComponent
        #expect(doctor.output.contains(name), "\(doctor.output)")
    }
}

import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A catalog that is started while the volume of its library is not mounted: the mount point is an empty folder.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct MissingVolumeTests {
    private func catalog(_ services: SafelightFixture, _ arguments: String...) throws -> (
        status: Int32?, output: String, errors: String
    ) {
        try RunningProgram.run("catalog", arguments, environment: services.environment, seconds: 20)
    }

    private func content(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder)
    }

    @Test func `an empty mount point is refused and left empty, and the library is back once it is mounted`()
        async throws
    {
        let services = try SafelightFixture("missing")
        let (live, away) = (services.folder.file("library"), services.folder.file("away"))
        // The first start of a library needs no flag.
        try services.start([.catalog])
        var library = try services.library()
        let result = try await library.perform([.createCollection(.init(ref: "a", title: "Alps"))])
        #expect(services.stop() == [])
        await library.close()

        try FileManager.default.moveItem(atPath: live, toPath: away)
        for isMountPoint in [false, true] {
            if isMountPoint { try FileManager.default.createDirectory(atPath: live, withIntermediateDirectories: true) }
            let refused = try catalog(services)
            #expect(refused.status != 0 && refused.status != nil)
            for part in ["offline: \(live) has no library", result.token.library, "mount", "--new-library", "restore"] {
                #expect(refused.errors.contains(part), "\(refused.errors)")
            }
            #expect(FileManager.default.fileExists(atPath: live) == isMountPoint)
            if isMountPoint { #expect(try content(live) == []) }
            let doctor = try services.safelight(["doctor"])
            #expect(doctor.status == 2 && doctor.output.contains("had the library"), "\(doctor.output)")
        }
        // The volume is mounted.
        try FileManager.default.removeItem(atPath: live)
        try FileManager.default.moveItem(atPath: away, toPath: live)
        try services.start([.catalog])
        library = try services.library()
        #expect(try await library.currentToken().token == result.token)
        let albums = try await library.collections(FetchDescription(.collections)).collections
        #expect(albums.contains { $0.title == "Alps" })
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a deleted library is replaced by a new one only with --new-library, which applies to one start`()
        async throws
    {
        let services = try SafelightFixture("deleted")
        let live = services.folder.file("library")
        try services.start([.catalog])
        #expect(services.stop() == [])
        try FileManager.default.removeItem(atPath: live)
        #expect(try catalog(services).errors.contains("--new-library"))

        func runUp() throws -> RunningProgram {
            try RunningProgram("safelight", ["up", "--new-library", "--json"], environment: services.environment)
        }
        let program = try runUp()
        #expect(program.waitForOutput(#""up""#), "\(program.errorText)")
        #expect(FileManager.default.fileExists(atPath: live + "/library.sqlite"))
        // The volume is unmounted and the catalog ends: `safelight up` restarts it, and it must not create another
        // library.
        try FileManager.default.moveItem(atPath: live, toPath: live + "-away")
        let pid = try #require(
            try String(contentsOfFile: live + "-away/lock", encoding: .utf8).split(whereSeparator: { !$0.isNumber })
                .compactMap { Int32($0) }.first
        )
        kill(pid, SIGKILL)
        #expect(program.wait { $0.errorText.contains("has no library") }, "\(program.errorText)")
        #expect(!FileManager.default.fileExists(atPath: live + "/library.sqlite"))
        program.signal(SIGTERM)
        #expect(program.wait(seconds: 20) != nil)
    }

    @Test func `a state folder that cannot be written does not make the library unavailable`() async throws {
        let services = try SafelightFixture("state")
        try services.folder.write(Data(), to: "state")
        try services.start([.catalog])
        let program = try #require(services.program(.catalog))
        #expect(program.wait { $0.errorText.contains("cannot be recorded") }, "\(program.errorText)")
        #expect(services.stop() == [])
    }
}

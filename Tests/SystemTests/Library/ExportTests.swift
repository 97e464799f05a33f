import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// `resource.export`: a file on the catalog's machine is complete or does not exist.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ExportTests {
    @Test(.spec("T-32"))
    func `a resource is exported whole to a path or as an attachment, and no error leaves a file`() async throws {
        let services = try SafelightFixture("export")
        try services.start([.catalog])
        let library = try services.library()
        // Several steps of the copy.
        let large = TestImages.jpeg(width: 640, height: 480, seed: 1) + [UInt8](repeating: 5, count: 6 << 20)
        let (ids, originals) = try await TestImages.importImages(2, into: library) { index in
            index == 0 ? TestImages.jpeg(width: 640, height: 480, seed: 2) : large
        }
        let folder = services.folder.file("out")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let path = folder + "/photo.jpg"
        func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder).sorted() }
        func refusal(_ request: ExportResource) async -> ErrorCode? {
            do throws(RPCError) {
                _ = try await library.catalog.ask(request)
                return nil
            } catch {
                return error.errorCode
            }
        }
        func content() throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

        let exported = try await library.catalog.ask(ExportResource(asset: ids[0], path: path)).result
        #expect(try exported.path == path && exported.resource.size == Int64(content().count))
        #expect(try content() == originals[ids[0]])
        #expect(try files() == ["photo.jpg"])
        let attached = try await library.catalog.ask(ExportResource(asset: ids[0]))
        #expect(attached.attachments.first == originals[ids[0]] && attached.result.path == nil)

        #expect(await refusal(ExportResource(asset: ids[1], path: path)) == .invalidOptions, "it exists")
        #expect(try content() == originals[ids[0]])
        _ = try await library.catalog.ask(ExportResource(asset: ids[1], path: path, replaces: true))
        #expect(try content() == originals[ids[1]])

        for (bad, code) in [
            ("photo.jpg", ErrorCode.invalidParams), (folder + "/../photo.jpg", .invalidParams),
            (folder + "/", .invalidParams),
            (folder, .invalidOptions), (folder + "/none/photo.jpg", .invalidOptions),
            (services.folder.file("library") + "/photo.jpg", .invalidOptions), ("/proc/photo.jpg", .invalidOptions),
        ] {
            #expect(await refusal(ExportResource(asset: ids[0], path: bad, replaces: true)) == code, "\(bad)")
        }
        #expect(await refusal(ExportResource(asset: ids[0], type: .fullSizePhoto, path: path)) == .missingResource)

        // Damaged bytes: neither a new file nor a change of an existing one.
        let digest = try #require(try await library.asset(ids[1]).resources.first?.digest)
        let stored =
            services.folder.file("library")
            + "/resources/\(digest.prefix(2))/\(digest.dropFirst(2).prefix(2))/\(digest)"
        chmod(stored, 0o644)
        let handle = try FileHandle(forWritingTo: URL(filePath: stored))
        try handle.seek(toOffset: 5 << 20)
        try handle.write(contentsOf: Data([1, 2, 3]))
        try handle.close()
        for target in [path, folder + "/other.jpg"] {
            let damaged = await refusal(ExportResource(asset: ids[1], path: target, replaces: true))
            #expect(damaged == .resourceChanged)
        }
        #expect(await refusal(ExportResource(asset: ids[1])) == .resourceChanged)
        #expect(try content() == originals[ids[1]])
        #expect(try files() == ["photo.jpg"])
        await library.close()
        #expect(services.stop() == [])
    }
}

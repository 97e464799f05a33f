import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import CommandLine

/// A catalog that accepts uploads and creates assets, for clients that may not name paths.
private final class UploadingCatalog: RequestHandler {
    private struct State {
        var begun = 0
        var open: Set<String> = []
        var created: [[ResourceType]] = []
        /// Errors of the next requests of a method.
        var failures: [String: [RPCError]]
    }

    private let state: Mutex<State>
    /// The maximum number of uploads that are open at a time.
    private let limit: Int

    init(limit: Int = 64, failing failures: [String: [RPCError]] = [:]) {
        self.limit = limit
        state = Mutex(State(failures: failures))
    }

    /// The types of the files of each new asset.
    var created: [[ResourceType]] { state.withLock { $0.created } }
    /// Uploads that were neither used nor cancelled.
    var open: Set<String> { state.withLock { $0.open } }
    /// The number of uploads that were begun.
    var begun: Int { state.withLock { $0.begun } }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        let call = try CatalogRequest(method: request.method, params: request.params)
        if case .perform(let changes) = call, Self.resources(of: changes).contains(where: { $0.path != nil }) {
            throw ErrorCode.accessDenied.error("no paths")
        }
        return try state.withLock { (state) throws(RPCError) -> Reply in
            if let failure = state.failures[request.method]?.first {
                state.failures[request.method]?.removeFirst()
                throw failure
            }
            return try self.reply(to: call, &state)
        }
    }

    private static func resources(of changes: PerformChanges) -> [NewResource] {
        changes.requests.flatMap { request -> [NewResource] in
            guard case .createAsset(let create) = request else { return [] }
            return create.resources
        }
    }

    private func reply(to request: CatalogRequest, _ state: inout State) throws(RPCError) -> Reply {
        switch request {
        case .beginUpload:
            guard state.open.count < limit else { throw Self.tooManyUploads }
            state.begun += 1
            state.open.insert("u\(state.begun)")
            return Reply(BeginUpload.Result(upload: "u\(state.begun)").json)
        case .appendUpload(let append): return Reply(AppendUpload.Result(size: append.offset).json)
        case .finishUpload(let finish):
            return Reply(FinishUpload.Result(upload: finish.upload, digest: finish.digest ?? "", size: 0).json)
        case .cancelUpload(let cancel):
            state.open.remove(cancel.upload)
            return Reply(EmptyResult().json)
        case .perform(let changes):
            let resources = Self.resources(of: changes)
            for resource in resources {
                guard let upload = resource.upload, state.open.remove(upload) != nil else {
                    throw ErrorCode.handleExpired.error("there is no such upload")
                }
            }
            state.created.append(resources.map(\.type))
            let number = String(state.created.count)
            let id = "a" + String(repeating: "0", count: 26 - number.count) + number
            let token = ChangeToken(library: String(repeating: "0", count: 32), sequence: Int64(state.created.count))
            return Reply(
                PerformChanges.Result(
                    token: token,
                    isChanged: true,
                    placeholders: ["file": .string(id)]
                ).json
            )
        default: throw ErrorCode.methodNotFound.error("the catalog of this test has no such method")
        }
    }

    /// The error of the catalog if an identity has the maximum number of open uploads.
    static var tooManyUploads: RPCError {
        ErrorCode.limitExceeded.error("too many uploads are open", ["limit": 64, "open": 64])
    }
}

/// Imports whose files are uploaded.
@Suite(.timeLimit(.minutes(2)))
struct ImportRunTests {
    /// Imports Live Photos whose files are too large for a request, 40 at a time, and requires that no file is broken.
    ///
    /// - Returns: the number of imported assets
    private func importPairs(_ count: Int, to catalog: UploadingCatalog) async throws -> Int {
        try await ClientFixture.with { fixture in
            let library = fixture.library
            let bytes = [UInt8](repeating: 7, count: BeginUpload.chunkBytes + 1)
            let file = FilePath(try fixture.folder.write(bytes, to: "large"))
            return try await fixture.serving(fixture.endpoints.catalog, catalog) {
                var items = Array(repeating: ImportItem(file, pairedVideo: file), count: count)
                var imported = 0
                try await ImportRun(library: library, maxConcurrentFiles: 40).run(
                    { items.popLast() },
                    stop: StopRequest()
                ) { _, file in
                    switch file.outcome {
                    case .imported: imported += 1
                    case .duplicate, .notApplied: Issue.record("the catalog of this test has no assets")
                    case .broken(let error): Issue.record("\(error)")
                    }
                }
                return imported
            }
        }
    }

    private let pair: [ResourceType] = [.photo, .pairedVideo]

    @Test func `an import of pairs never has more open uploads than an identity may have`() async throws {
        // At most 16 items upload their files at a time.
        let catalog = UploadingCatalog(limit: 32)
        #expect(try await importPairs(60, to: catalog) == 60)
        #expect(catalog.created == Array(repeating: pair, count: 60))
        #expect(catalog.open.isEmpty)
    }

    @Test func `a pair is imported as one asset if the catalog loses its uploads`() async throws {
        let expired = ErrorCode.handleExpired.error("the catalog was restarted")
        let catalog = UploadingCatalog(failing: ["changes.perform": [expired, expired]])
        #expect(try await importPairs(1, to: catalog) == 1)
        #expect(catalog.created == [pair])
        #expect(catalog.begun == 6 && catalog.open.isEmpty)
    }

    @Test func `an import waits for the uploads of another one`() async throws {
        let catalog = UploadingCatalog(failing: ["upload.begin": [UploadingCatalog.tooManyUploads]])
        #expect(try await importPairs(1, to: catalog) == 1)
        #expect(catalog.created == [pair])
    }

    @Test func `the uploads of files that do not belong together are cancelled`() async throws {
        let refusal = ErrorCode.resourcesDisagree.error("they do not show the same photo")
        let catalog = UploadingCatalog(failing: ["changes.perform": [refusal]])
        #expect(try await importPairs(1, to: catalog) == 2)
        #expect(catalog.created == [[.photo], [.photo]])
        #expect(catalog.begun == 4 && catalog.open.isEmpty)
    }

    @Test func `an import stops, and no file is reported as broken, if its uploads are always lost`() async throws {
        let expired = ErrorCode.handleExpired.error("the catalog was restarted")
        let catalog = UploadingCatalog(failing: ["changes.perform": Array(repeating: expired, count: 5)])
        let error = await #expect(throws: RPCError.self) { try await importPairs(1, to: catalog) }
        #expect(error?.errorCode == .handleExpired)
        #expect(catalog.created.isEmpty && catalog.open.isEmpty)
    }
}

import Contracts
import Basics
import Dispatch
import JSONValue
import Messaging
import PhotoModel
import Synchronization
import TestSupport
import Testing

@testable import PhotoClient

/// Counts the jobs that it runs.
private final class CountingExecutor: TaskExecutor {
    let jobs = RecordedList<Int>()
    private let queue = DispatchQueue(label: "counting-executor")

    func enqueue(_ job: consuming ExecutorJob) {
        jobs.add(1)
        let job = UnownedJob(job)
        queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}

@Suite(.timeLimit(.minutes(5)), .serialized)
struct PhotoLibraryTests {
    private let favourite = ChangeRequest.updateAsset(
        .init(id: .id(assetID(1)), set: AssetPatch(isFavorite: true))
    )

    @Test func `the error of a service that is stopping is thrown, and the request is not repeated`() async throws {
        try await ClientFixture.with { fixture in
            let requests = RecordedList<String>()
            let library = fixture.library
            try await fixture.serving(fixture.endpoints.thumbnailers[0]) { (request, _) throws(RPCError) in
                requests.add(request.method)
                throw RPCError.busy("the service is stopping").ofStoppingService
            } while: {
                let error = await #expect(throws: RPCError.self) {
                    try await library.image(
                        ImageRequest(asset: assetID(1), targetSize: .size(width: 9, height: 9)),
                        deadline: .seconds(2)
                    )
                }
                #expect(error?.errorCode == .busy)
            }
            #expect(requests.all == ["image.request"])
        }
    }

    @Test func `a change is sent again with its transaction id if the catalog restarts`() async throws {
        try await ClientFixture.with { fixture in
            let transactions = RecordedList<String>()
            let (library, change) = (fixture.library, favourite)
            let outcome = Task { try await library.perform([change]) }
            // The first catalog receives the change and ends before it responds.
            let (received, receivedSignal) = AsyncStream.makeStream(of: Void.self)
            try await fixture.serving(fixture.endpoints.catalog) { (request, _) throws(RPCError) in
                transactions.add(request.params["transaction"]?.stringValue ?? "")
                receivedSignal.finish()
                while !Task.isCancelled { await Task.yield() }
                throw .internalError("the catalog has ended")
            } while: {
                for await _ in received {}
            }
            try await fixture.serving(fixture.endpoints.catalog) { (request, _) throws(RPCError) in
                transactions.add(request.params["transaction"]?.stringValue ?? "")
                return Reply(PerformChanges.Result(token: token(5), isChanged: true).json)
            } while: {
                let performed = try await outcome.value
                #expect(performed.sequence == 5)
            }
            #expect(transactions.all.count == 2)
            #expect(Set(transactions.all).count == 1)
            #expect(transactions.all.first?.utf8.count == 32)
        }
    }

    @Test func `a permanent error is not retried`() async throws {
        try await ClientFixture.with { fixture in
            let attempts = RecordedList<Int>()
            let library = fixture.library
            let change = favourite
            try await fixture.serving(fixture.endpoints.catalog) { (_, _) throws(RPCError) in
                attempts.add(1)
                throw ErrorCode.idReused.error("the content is different")
            } while: {
                let error = await #expect(throws: RPCError.self) {
                    try await library.perform([change], transaction: "t1")
                }
                #expect(error?.errorCode == .idReused)
            }
            #expect(attempts.all.count == 1)
        }
    }

    @Test func `a cancelled request is transient if the service stops, not if the owner or a later edit ended it`() {
        #expect(ErrorCode.userCancelled.error("the service is stopping").isTransient)
        #expect(!ErrorCode.userCancelled.error("declined", ["question": "q1"]).isTransient)
        #expect(!ErrorCode.userCancelled.error("replaced", ["isReplaced": true]).isTransient)
    }

    @Test func `an upload that expired at the catalog begins again and is finished with its digest`() async throws {
        try await ClientFixture.with { fixture in
            let bytes = Bytes((0..<2_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            let received = Mutex<[String: Bytes]>([:])
            let library = fixture.library
            let uploads = RecordedList<Int>()
            try await fixture.serving(fixture.endpoints.catalog) { (request, context) throws(RPCError) in
                switch try CatalogRequest(method: request.method, params: request.params) {
                case .beginUpload:
                    return Reply(BeginUpload.Result(upload: "u\(uploads.add(1))").json)
                case .appendUpload(let append):
                    if append.upload == "u1", append.offset > 0 { throw ErrorCode.handleExpired.error("restarted") }
                    let size = received.withLock { all in
                        all[append.upload, default: []].append(contentsOf: context.attachments.first ?? [])
                        return all[append.upload]?.count ?? 0
                    }
                    return Reply(AppendUpload.Result(size: Int64(size)).json)
                case .finishUpload(let finish):
                    let whole = received.withLock { $0[finish.upload] } ?? []
                    #expect(finish.digest == SHA256.hash(data: whole).hexadecimal)
                    return Reply(
                        FinishUpload.Result(
                            upload: finish.upload,
                            digest: finish.digest ?? "",
                            size: Int64(whole.count)
                        ).json
                    )
                default: throw ErrorCode.methodNotFound.error("not here")
                }
            } while: {
                #expect(try await library.upload(bytes) == "u2")
                let path = try fixture.folder.write(bytes, to: "photo.jpg")
                #expect(try await library.upload(file: path) == "u3")
            }
            #expect(received.withLock { $0["u2"] } == bytes)
            #expect(received.withLock { $0["u3"] } == bytes)
        }
    }

    @Test func `uploads are cancelled on the executor of the client`() async throws {
        try await ClientFixture.with { fixture in
            let executor = CountingExecutor()
            let library = try PhotoLibrary(
                endpoints: fixture.endpoints,
                client: "test",
                limits: ClientFixture.limits,
                logger: ClientFixture.logger,
                executor: executor
            )
            let cancelled = RecordedList<String>()
            try await fixture.serving(fixture.endpoints.catalog) { (request, _) throws(RPCError) in
                cancelled.add(try CancelUpload(params: request.params).upload)
                return Reply(.object([:]))
            } while: {
                await library.cancelUploads(["u1", "u2"])
            }
            #expect(cancelled.all == ["u1", "u2"])
            #expect(!executor.jobs.all.isEmpty)
            await library.close()
        }
    }

    @Test func `the bytes of a resource fail if there is no connection in time`() async throws {
        try await ClientFixture.with { fixture in
            let library = fixture.library
            let late = await #expect(throws: RPCError.self) {
                try await library.resource(asset: assetID(1), connectionDeadline: .milliseconds(20)).readAll(limit: 1)
            }
            #expect(late?.errorCode == .deadlineExceeded)
            let lost = await #expect(throws: RPCError.self) {
                for try await _ in library.catalog.stream(Health(), credit: 1, waitsForConnection: false) {}
            }
            #expect(lost?.errorCode == .connectionLost)
        }
    }

    @Test func `an export is read and ended at the thumbnailer that ran it, even if another is preferred`()
        async throws
    {
        try await ClientFixture.with { fixture in
            var endpoints = fixture.endpoints
            endpoints.thumbnailers.append(try EndpointAddress("ipc://\(fixture.folder.file("thumbnailer2"))"))
            let addresses = endpoints.thumbnailers
            let preferred = Rendezvous.order(addresses.map(\.description), for: assetID(1).text)[0]
            let library = try PhotoLibrary(
                endpoints: endpoints,
                client: "test",
                limits: ClientFixture.limits,
                logger: ClientFixture.logger
            )
            let (requests, ended) = (RecordedList<String>(), RecordedList<String>())
            try await fixture.serving(addresses[preferred]) { (request, _) throws(RPCError) in
                requests.add(request.method)
                throw ErrorCode.handleExpired.error("there is no such export")
            } while: {
                try await fixture.serving(addresses[1 - preferred]) { (request, _) throws(RPCError) in
                    if request.method == CancelVideoExport.method {
                        ended.add(try CancelVideoExport(params: request.params).export)
                        return Reply(.object([:]))
                    }
                    let range = try ReadVideo(params: request.params)
                    let result = ReadVideo.Result(offset: range.offset, length: 3, size: 3)
                    return Reply(result.json, attachments: [[1, 2, 3]])
                } while: {
                    // Each instance has to respond once, so that both are connected.
                    for instance in library.thumbnailer.instances { _ = try? await instance.health() }
                    var bytes: Bytes = []
                    try await library.readStream("e1", of: assetID(1), size: 3) { part in
                        bytes += part
                        return true
                    }
                    #expect(bytes == [1, 2, 3])
                    let status = VideoExportStatus(export: "e1", asset: assetID(1), state: .done, preset: .low)
                    await library.endExport(status)
                }
            }
            #expect(requests.all.contains(ReadVideo.method))
            #expect(ended.all == ["e1"])
            await library.close()
        }
    }

    @Test func `an upload of a missing file fails with missing_resource`() async throws {
        try await ClientFixture.with { fixture in
            let error = await #expect(throws: RPCError.self) {
                try await fixture.library.upload(file: fixture.folder.file("nothing.jpg"))
            }
            #expect(error?.errorCode == .missingResource)
        }
    }

    private static func send(
        _ bytes: Bytes,
        digest: String,
        _ request: IncomingRequest,
        _ context: RequestContext
    ) async throws(RPCError) -> Reply {
        // The client requests `health` before the first file.
        guard request.method != Health.method else {
            return Reply(
                Health.Result(service: "catalog", version: "1", isHealthy: true, problems: [], sequence: 1).json
            )
        }
        let read = try ReadResource(params: request.params)
        var offset = Int(read.offset)
        while offset < bytes.count {
            let chunk = Bytes(bytes[offset...].prefix(ReadResource.chunkBytes))
            try await context.notifier.notify(
                ReadResource.notification,
                ["offset": JSON(offset)],
                attachments: [chunk]
            )
            offset += chunk.count
        }
        let resource = AssetResource(
            type: .photo,
            digest: digest,
            size: Int64(bytes.count),
            contentType: "image/jpeg"
        )
        let length = Int64(bytes.count) - read.offset
        return Reply(ReadResource.Result(resource: resource, offset: read.offset, length: length).json)
    }

    @Test func `a resource is read completely and its digest verified`() async throws {
        try await ClientFixture.with { fixture in
            let bytes = Bytes((0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
            let digest = SHA256.hash(data: bytes).hexadecimal
            let library = fixture.library
            try await fixture.serving(fixture.endpoints.catalog) { (request, context) throws(RPCError) in
                try await Self.send(bytes, digest: digest, request, context)
            } while: {
                let whole = try await library.resource(asset: assetID(1)).readAll(limit: 5_000_000)
                #expect(whole == bytes)
                let error = await #expect(throws: RPCError.self) {
                    try await library.resource(asset: assetID(1)).readAll(limit: 4_999_999)
                }
                #expect(error?.errorCode == .limitExceeded)
            }
        }
    }

    @Test func `a resource whose bytes do not match its digest is refused`() async throws {
        try await ClientFixture.with { fixture in
            let digest = SHA256.hash(data: Bytes("original".utf8)).hexadecimal
            let library = fixture.library
            try await fixture.serving(fixture.endpoints.catalog) { (request, context) throws(RPCError) in
                try await Self.send(Bytes("tampered".utf8), digest: digest, request, context)
            } while: {
                let error = await #expect(throws: RPCError.self) {
                    try await library.resource(asset: assetID(1)).readAll(limit: 100)
                }
                #expect(error?.errorCode == .resourceChanged)
            }
        }
    }

    @Test func `a resource is requested with the given digest`() async throws {
        try await ClientFixture.with { fixture in
            let bytes = Bytes("render".utf8)
            let digest = SHA256.hash(data: bytes).hexadecimal
            let library = fixture.library
            let digests = RecordedList<String?>()
            try await fixture.serving(fixture.endpoints.catalog) { (request, context) throws(RPCError) in
                if request.method == ReadResource.method {
                    digests.add(try ReadResource(params: request.params).digest)
                }
                return try await Self.send(bytes, digest: digest, request, context)
            } while: {
                let whole = try await library.resource(asset: assetID(1), type: .fullSizePhoto, digest: digest)
                    .readAll(limit: 100)
                #expect(whole == bytes)
            }
            #expect(digests.all == [digest])
        }
    }

    @Test func `all pages of a fetch are requested at the same token`() async throws {
        try await ClientFixture.with { fixture in
            let library = fixture.library
            let tokens = RecordedList<ChangeToken?>()
            try await fixture.serving(fixture.endpoints.catalog) { (request, _) throws(RPCError) in
                let fetch = try FetchAssets(params: request.params)
                tokens.add(fetch.token)
                let all = (0..<25).map { Asset(id: assetID(UInt64($0))) }
                let page = Array(all.dropFirst(fetch.from).prefix(fetch.count))
                return Reply(FetchAssets.Result(token: fetch.token ?? token(3), count: 25, assets: page).json)
            } while: {
                var ids: [ObjectID] = []
                for try await asset in library.allAssets(FetchDescription(.assets), pageSize: 10) {
                    ids.append(asset.id)
                }
                #expect(ids == (0..<25).map { assetID(UInt64($0)) })
            }
            #expect(tokens.all == [nil, token(3), token(3)])
        }
    }

    @Test func `a missing asset is an error`() async throws {
        try await ClientFixture.with { fixture in
            let library = fixture.library
            try await fixture.serving(fixture.endpoints.catalog) { (request, _) throws(RPCError) in
                let fetch = try FetchAssets(params: request.params)
                #expect(fetch.fetch.ids == [assetID(7)])
                return Reply(FetchAssets.Result(token: token(3), count: 0, assets: [], missing: [assetID(7)]).json)
            } while: {
                let error = await #expect(throws: RPCError.self) { try await library.asset(assetID(7)) }
                #expect(error?.errorCode == .identifierNotFound)
            }
        }
    }

    @Test func `retry delays increase, and jitter subtracts at most a quarter`() {
        var backoff = Backoff()
        #expect(backoff.nextDelay(jitter: 0) == .milliseconds(50))
        #expect(backoff.nextDelay(jitter: 1) == .milliseconds(75))
        for _ in 0..<20 { _ = backoff.nextDelay(jitter: 0) }
        #expect(backoff.nextDelay(jitter: 0) == .seconds(2))
        backoff.reset()
        #expect(backoff.nextDelay(jitter: 0) == .milliseconds(50))
    }

    @Test func `all assets are read in smaller pages while one is too large for a message`() async throws {
        try await ClientFixture.with { fixture in
            let (library, requests) = (fixture.library, RecordedList<Int>())
            let all = (1...20).map { Asset(id: assetID($0)) }
            try await fixture.serving(fixture.endpoints.catalog) { (request, _) throws(RPCError) in
                let page = try FetchAssets(params: request.params)
                requests.add(page.count)
                guard page.count <= 3 || page.from >= 12 else {
                    throw ErrorCode.limitExceeded.error("the page is too large")
                }
                let assets = Array(all.dropFirst(page.from).prefix(page.count))
                return Reply(FetchAssets.Result(token: token(5), count: all.count, assets: assets).json)
            } while: {
                var ids: [ObjectID] = []
                let assets = library.allAssets(FetchDescription(.assets), pageSize: 6)
                for try await asset in assets { ids.append(asset.id) }
                #expect(ids == all.map(\.id))
            }
            #expect(requests.all == [6, 3, 3, 3, 3, 6, 6])
        }
    }

    @Test func `a live list reads the identifiers of its assets, not the assets`() async throws {
        try await ClientFixture.with { fixture in
            let (library, requests) = (fixture.library, RecordedList<Bool>())
            try await fixture.serving(fixture.endpoints.catalog) { (request, _) throws(RPCError) in
                let page = try FetchAssets(params: request.params)
                requests.add(page.projection.isIDsOnly)
                let assets = [Asset(id: assetID(1))]
                return Reply(FetchAssets.Result(token: token(5), count: 1, assets: assets).json)
            } while: {
                for try await event in library.live(FetchDescription(.assets)) {
                    #expect(event == .list([assetID(1)], token(5)))
                    break
                }
            }
            #expect(requests.all == [true])
        }
    }
}

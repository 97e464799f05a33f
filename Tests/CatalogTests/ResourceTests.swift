import Basics
import Contracts
import Foundation
import Glibc
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Catalog

@Suite(.serialized, .timeLimit(.minutes(5)))
struct ResourceTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("cat") }

    @Test(.spec("T-31")) func `uploaded bytes are read whole, in part and in chunks`() async throws {
        // An image with more bytes after its end than one chunk has.
        let bytes = image(1) + (0..<(2_500_000)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        try await CatalogFixture.with(folder) { catalog in
            let name = try await catalog.upload(bytes)
            let created = try await catalog.perform([
                .createAsset(
                    .init(
                        ref: "p",
                        resources: [NewResource(source: .upload(name), originalFilename: "é.jpg")]
                    )
                )
            ])
            let id = try #require(created.id("p"))
            let whole = try await catalog.client.call(ReadResource.method, ReadResource(asset: id, type: .photo).json)
            #expect(whole.attachments == [bytes])
            let result = try ReadResource.Result(json: whole.result)
            #expect(result.resource.digest == ResourceDigest(of: bytes).text && result.length == Int64(bytes.count))
            let part = try await catalog.client.call(
                ReadResource.method,
                ReadResource(asset: id, type: .photo, offset: 100, length: 50).json
            )
            #expect(part.attachments == [Array(bytes[100..<150])])

            var received: Bytes = []
            let stream = catalog.client.stream(
                ReadResource.method,
                ReadResource(asset: id, type: .photo).json,
                deadline: .seconds(30),
                credit: 1_200_000
            )
            for try await element in stream {
                guard case .notification(_, let params, let chunks) = element else { continue }
                #expect(params["offset"]?.intValue == Int64(received.count))
                received += chunks.joined()
            }
            #expect(received == bytes)

            let missing = await rpcError {
                try await catalog.call(ReadResource(asset: id, type: .fullSizePhoto))
            }
            #expect(missing?.name == "missing_resource" && missing?.data["allowed"] == ["photo"])
            let digest = ResourceDigest(of: bytes).text.uppercased()
            let named = ReadResource(asset: id, type: .fullSizePhoto, digest: digest, length: 50)
            #expect(try await catalog.client.call(ReadResource.method, named.json).attachments == [Array(bytes[..<50])])
            let other = await rpcError { try await catalog.call(ReadResource(asset: id, digest: "0")) }
            #expect(other?.name == "missing_resource" && other?.data["parameter"] == "digest")
            let beyond = await rpcError {
                try await catalog.call(ReadResource(asset: id, type: .photo, offset: 1 << 40))
            }
            #expect(beyond?.name == "range_error")
        }
    }

    @Test(.spec("T-31")) func `a read without credit returns all requested bytes or an error`() async throws {
        let bytes = image(1) + (0..<(9 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 11) }
        try await CatalogFixture.with(folder) { catalog in
            let name = try await catalog.upload(bytes)
            let created = try await catalog.perform([
                .createAsset(.init(ref: "p", resources: [NewResource(source: .upload(name))]))
            ])
            let id = try #require(created.id("p"))
            for read in [
                ReadResource(asset: id, type: .photo),
                ReadResource(asset: id, type: .photo, offset: 1, length: 9 << 20),
            ] {
                let error = await rpcError { try await catalog.call(read) }
                #expect(error?.name == "limit_exceeded" && error?.data["limit"] == JSON(ReadResource.maxReplyBytes))
                #expect(error?.data["size"] == JSON(bytes.count))
                #expect(error?.message.contains("offset and length") == true, "\(error?.message ?? "")")
            }
            var received: Bytes = []
            while received.count < bytes.count {
                let length = min(ReadResource.maxReplyBytes, bytes.count - received.count)
                let read = ReadResource(asset: id, type: .photo, offset: Int64(received.count), length: Int64(length))
                received += try await catalog.client.call(ReadResource.method, read.json).attachments[0]
            }
            #expect(received == bytes)
            let rest = ReadResource(asset: id, type: .photo, offset: Int64(bytes.count - 7))
            #expect(
                try await catalog.client.call(ReadResource.method, rest.json).attachments == [Array(bytes.suffix(7))]
            )
        }
    }

    @Test func `a client without notifications gets one reply, and changes.follow refuses it`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let handler = catalog.service.handler
            func ask(_ request: some Request, credit: Int?) async throws -> Reply {
                let incoming = IncomingRequest(id: 1, method: type(of: request).method, params: request.json)
                return try await handler.handle(incoming, RequestContext(acceptsNotifications: false, credit: credit))
            }
            let reply = try await ask(ReadResource(asset: id, type: .photo), credit: 1 << 20)
            #expect(reply.attachments == [image(1)])
            let error = await rpcError { try await ask(ChangesFollow(token: nil), credit: nil) }
            #expect(error?.name == "invalid_options")
        }
    }

    @Test func `an upload refuses gaps, accepts repeated chunks, and belongs to its owner`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let name = try await catalog.call(BeginUpload()).upload
            func append(_ offset: Int64, _ bytes: Bytes) async throws -> Int64 {
                try await catalog.call(AppendUpload(upload: name, offset: offset), attachments: [bytes]).size
            }
            #expect(try await append(0, [1, 2, 3]) == 3)
            #expect(try await append(0, [1, 2, 3]) == 3)
            #expect(try await append(1, [2]) == 3)
            let other = await rpcError { try await append(0, [1, 2, 4]) }
            #expect(other?.name == "range_error", "bytes are neither lost nor replaced without notice")
            let gap = await rpcError { try await append(7, [1]) }
            #expect(gap?.name == "range_error" && gap?.data["size"] == 3)
            let huge = await rpcError { try await append(.max, [1]) }
            #expect(huge?.name == "range_error")
            #expect(try await append(3, [4]) == 4)
            let uploads = catalog.service.uploads
            await #expect(throws: ResourceError.uploadExpired(name)) {
                try await uploads.finish(FinishUpload(upload: name), identity: "uid:99999")
            }
            let wrong = await rpcError {
                try await catalog.call(FinishUpload(upload: name, digest: String(repeating: "0", count: 64)))
            }
            #expect(wrong?.name == "invalid_resource")
            let expired = await rpcError { try await append(4, [5]) }
            #expect(expired?.name == "handle_expired")
        }
    }

    @Test func `an announced digest may be in upper case, and an upload survives a malformed one`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let name = try await catalog.call(BeginUpload()).upload
            let bytes: Bytes = [1, 2, 3]
            _ = try await catalog.call(AppendUpload(upload: name, offset: 0), attachments: [bytes])
            for text in ["", "sha256:0", String(repeating: "g", count: 64)] {
                let error = await rpcError { try await catalog.call(FinishUpload(upload: name, digest: text)) }
                #expect(error?.name == "invalid_params" && error?.data["parameter"] == "digest")
            }
            let digest = ResourceDigest(of: bytes).text
            let finish = FinishUpload(upload: name, digest: digest.uppercased())
            #expect(try await catalog.call(finish).digest == digest)
        }
    }

    @Test func `an upload has the size that was announced`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let name = try await catalog.call(BeginUpload(size: 4)).upload
            func append(_ offset: Int64, _ bytes: Bytes) async throws -> Int64 {
                try await catalog.call(AppendUpload(upload: name, offset: offset), attachments: [bytes]).size
            }
            #expect(try await append(0, [1, 2, 3]) == 3)
            let long = await rpcError { try await append(3, [4, 5]) }
            #expect(long?.name == "range_error" && long?.data["size"] == 4)
            let short = await rpcError { try await catalog.call(FinishUpload(upload: name)) }
            #expect(short?.name == "range_error" && short?.message.contains("append the rest") == true)
            #expect(try await append(3, [4]) == 4)
            #expect(try await catalog.call(FinishUpload(upload: name)).size == 4)
        }
    }

    @Test func `uploads have a lease, a maximum number and a maximum size`() async throws {
        let resources = try ResourceStore(root: folder.file("resources"))
        let clock = ManualClock(0)
        var limits = UploadRegistry.Limits()
        limits.perIdentity = 2
        limits.bytes = 10
        limits.bytesPerIdentity = 15
        let names = ManualClock(0)
        let uploads = UploadRegistry(
            resources: resources,
            blockingIO: BlockingIOExecutor(),
            clock: clock.clock,
            limits: limits,
            makeName: { "u\(names.advance(by: 1))" }
        )
        let first = try await uploads.begin(BeginUpload(), identity: "a").upload
        _ = try await uploads.append(
            AppendUpload(upload: first, offset: 0),
            [Array(repeating: 1, count: 9)],
            identity: "a"
        )
        let big = await rpcError { try await uploads.begin(BeginUpload(size: 7), identity: "a") }
        #expect(big?.name == "limit_exceeded" && big?.data["limit"] == 6)
        let second = try await uploads.begin(BeginUpload(size: 6), identity: "a").upload
        let third = await rpcError { try await uploads.begin(BeginUpload(), identity: "a") }
        #expect(third?.name == "limit_exceeded")
        _ = try await uploads.begin(BeginUpload(), identity: "b")
        clock.advance(by: limits.lease - 1)
        _ = try await uploads.append(
            AppendUpload(upload: second, offset: 0),
            [Bytes(repeating: 1, count: 6)],
            identity: "a"
        )
        clock.advance(by: 2)
        let expired = await rpcError {
            try await uploads.append(AppendUpload(upload: first, offset: 9), [[1]], identity: "a")
        }
        #expect(expired?.name == "handle_expired")
        #expect(await uploads.count == 1)
        _ = try await uploads.finish(FinishUpload(upload: second), identity: "a")
        _ = try await uploads.finish(FinishUpload(upload: second), identity: "a")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("resources/.incoming")).isEmpty)
    }

    @Test func `uploads that begin at the same time count against the limit`() async throws {
        let resources = try ResourceStore(root: folder.file("resources"))
        var limits = UploadRegistry.Limits()
        limits.perIdentity = 2
        let names = ManualClock(0)
        let uploads = UploadRegistry(
            resources: resources,
            blockingIO: BlockingIOExecutor(),
            clock: ManualClock(0).clock,
            limits: limits,
            makeName: { "u\(names.advance(by: 1))" }
        )
        let errors: [ErrorCode?] = await withTaskGroup(of: RPCError?.self) { group in
            for _ in 0..<16 {
                group.addTask { await rpcError { try await uploads.begin(BeginUpload(), identity: "a") } }
            }
            return await group.reduce(into: []) { $0.append($1?.errorCode) }
        }
        #expect(errors.count { $0 == nil } == 2 && errors.count { $0 == .limitExceeded } == 14)
        #expect(await uploads.count == 2)
    }

    @Test func `a broken file is named in the error, and its transaction stores nothing`() async throws {
        let good = try folder.write(image(1), to: "in/good.jpg")
        let files = [
            "empty.jpg": [], "text.jpg": Array("This is no picture at all, but a text.".utf8),
            "cut.jpg": Array(image(2).prefix(40)),
        ]
        try await CatalogFixture.with(folder) { catalog in
            func create(_ path: String) -> ChangeRequest {
                .createAsset(.init(ref: "p", resources: [NewResource(source: .path(path))]))
            }
            for (name, bytes) in files {
                let path = try folder.write(bytes, to: "in/\(name)")
                let error = await rpcError {
                    try await catalog.perform([
                        .createAsset(.init(resources: [NewResource(source: .path(good))])), create(path),
                    ])
                }
                #expect(error?.code == 3302 && error?.data["request"] == 1, "\(name): \(String(describing: error))")
                #expect(error?.message.contains(name) == true && error?.data["reason"] != nil)
            }
            symlink(good, folder.file("in/link.jpg"))
            mkfifo(folder.file("in/pipe.jpg"), 0o600)
            for name in ["link.jpg", "pipe.jpg", "nowhere.jpg", "."] {
                let error = await rpcError { try await catalog.perform([create(folder.file("in/" + name))]) }
                #expect(error?.name == "invalid_resource", "\(name): \(String(describing: error))")
            }
            let relative = await rpcError { try await catalog.perform([create("good.jpg")]) }
            #expect(relative?.name == "invalid_params")
            #expect(try await catalog.assets().isEmpty)
            #expect(try await catalog.history().isEmpty)
        }
    }

    @Test func `a request that is cancelled leaves no bytes, except those of an asset`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let id = try #require(try await catalog.importImages([image(1)]).first)
            let (resources, collector) = (catalog.service.resources, catalog.service.collector)
            let referenced = try resources.put(bytes: image(1))
            let new = try resources.put(bytes: image(2))
            #expect(referenced.wasPresent && !new.wasPresent)
            for stored in [referenced, new] { stored.lease.end() }
            // The client has ended, for example because another of its requests was refused.
            await Task {
                withUnsafeCurrentTask { $0?.cancel() }
                await collector.discard([referenced.digest, new.digest])
            }.value
            #expect(resources.contains(referenced.digest) && !resources.contains(new.digest))
            #expect(try await catalog.asset(id).originalResource?.digest == referenced.digest.text)
        }
    }

    @Test(.onlySQLite)
    func `a failed commit leaves its bytes to the collector, because it may have been durable`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let (resources, digest) = (catalog.service.resources, ResourceDigest(of: image(1)))
            let create = ChangeRequest.createAsset(.init(ref: "p", resources: [NewResource(source: .attachment(0))]))
            // The counters are written after the requests, shortly before the commit.
            try await catalog.service.store.onWriter { database in
                try database.run(
                    once: """
                        CREATE TEMP TRIGGER refuse BEFORE INSERT ON counter WHEN new.name = 'assets'
                        BEGIN SELECT RAISE(ABORT, 'refused'); END
                        """
                )
            }
            let failed = await rpcError {
                try await catalog.perform([create], transaction: "t", attachments: [image(1)])
            }
            #expect(failed?.errorCode == .internalError && resources.contains(digest))
            // The bytes of an upload that is cancelled afterwards stay.
            let name = try await catalog.upload(image(2))
            let other = ChangeRequest.createAsset(.init(resources: [NewResource(source: .upload(name))]))
            let refused = await rpcError { try await catalog.perform([other], transaction: "u") }
            _ = try await catalog.call(CancelUpload(upload: name))
            #expect(refused?.errorCode == .internalError && resources.contains(ResourceDigest(of: image(2))))
            try await catalog.service.store.onWriter { try $0.run(once: "DROP TRIGGER temp.refuse") }
            let id = try #require(
                try await catalog.perform([create], transaction: "t", attachments: [image(1)]).id("p")
            )
            #expect(try await catalog.asset(id).originalResource?.digest == digest.text)
            #expect(resources.contains(digest))
        }
    }

    @Test func `files are imported from below the import roots only`() async throws {
        let inside = try folder.write(image(1), to: "in/good.jpg")
        let outside = try folder.write(image(2), to: "out/secret.jpg")
        symlink(folder.file("out"), folder.file("in/way"))
        let roots = try ImportRoots([folder.file("in")])
        _ = try roots.open(inside, for: "uid:12345")
        for path in [outside, folder.file("in/way/secret.jpg"), folder.file("in/../out/secret.jpg")] {
            #expect(throws: ResourceError.notBelowImportFolder(path: path)) {
                try roots.open(path, for: "uid:\(geteuid())")
            }
        }
        let all = try ImportRoots([])
        _ = try all.open(outside, for: "uid:\(geteuid())")
        for identity in ["uid:12345", "loopback", "key:x"] {
            let error = #expect(throws: ResourceError.self) { try all.open(outside, for: identity) }
            #expect(error.map(CatalogErrorMapping.rpcError)?.errorCode == .accessDenied)
        }
        #expect(throws: ResourceError.self) { try ImportRoots([folder.file("nowhere")]) }
    }

    @Test func `the render of an edit is upright, the original is kept, and a stale edit is refused`() async throws {
        let original = TestImages.jpeg(width: 60, height: 80, orientation: 6, seed: 1)
        let render = TestImages.jpeg(width: 20, height: 10, seed: 2)
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([original])[0]
            let before = try await catalog.asset(id)
            func edit(_ revision: Revision?) -> ChangeRequest {
                .editAsset(
                    .init(
                        id: id,
                        render: NewResource(source: .attachment(0)),
                        adjustmentData: AdjustmentData(
                            formatIdentifier: "org.example.sepia",
                            formatVersion: "1",
                            attachment: 1
                        ),
                        ifContentRevision: revision
                    )
                )
            }
            let rotated = TestImages.jpeg(width: 20, height: 10, orientation: 3, seed: 2)
            let error = await rpcError {
                try await catalog.perform([edit(nil)], attachments: [rotated, [1, 2]])
            }
            #expect(error?.name == "invalid_resource")
            try await catalog.perform([edit(before.contentRevision)], attachments: [render, [1, 2]])
            let edited = try await catalog.asset(id)
            #expect((edited.pixelWidth, edited.pixelHeight) == (20, 10) && edited.hasAdjustments)
            #expect(edited.creationDate == before.creationDate)
            let stale = await rpcError {
                try await catalog.perform([edit(before.contentRevision)], attachments: [render, [3]])
            }
            #expect(stale?.name == "conflict")
            for (type, bytes) in [(ResourceType.photo, original), (.fullSizePhoto, render), (.adjustmentData, [1, 2])] {
                let reply = try await catalog.client.call(
                    ReadResource.method,
                    ReadResource(asset: id, type: type).json
                )
                #expect(reply.attachments == [bytes])
            }
            try await catalog.perform([.revertAsset(.init(id: id))])
            let reverted = try await catalog.asset(id)
            #expect(reverted.resources == before.resources && !reverted.hasAdjustments)
            #expect((reverted.pixelWidth, reverted.pixelHeight) == (before.pixelWidth, before.pixelHeight))
        }
    }

    @Test func `a killed worker fails only the imports that it runs`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for seed in UInt64(1)...40 {
                    group.addTask {
                        do {
                            _ = try await catalog.importImages([image(seed)])
                            return true
                        } catch let error as RPCError where error.name == "worker_crashed" {
                            return false
                        }
                    }
                }
                var lost = 0
                var finished = 0
                for try await isImported in group {
                    finished += 1
                    if !isImported { lost += 1 }
                    if finished % 10 == 0, let pid = catalog.workerPID { kill(pid, SIGKILL) }
                }
                let count = try await catalog.assets().count
                #expect(count == 40 - lost && lost <= 5)
            }
            _ = try await catalog.importImages([image(1000)])
            #expect(try await catalog.call(Health()).isHealthy)
        }
    }
}

extension CatalogFixture {
    /// Uploads bytes in steps and returns the upload's id.
    func upload(_ bytes: Bytes) async throws -> String {
        let name = try await call(BeginUpload(size: Int64(bytes.count))).upload
        var offset = 0
        while offset < bytes.count {
            let step = Array(bytes[offset..<min(bytes.count, offset + BeginUpload.chunkBytes)])
            let size = try await call(AppendUpload(upload: name, offset: Int64(offset)), attachments: [step]).size
            offset += step.count
            #expect(size == Int64(offset))
        }
        let finished = try await call(FinishUpload(upload: name, digest: ResourceDigest(of: bytes).text))
        #expect(finished.size == Int64(bytes.count))
        return name
    }

    var workerPID: Int32? {
        service.workers.metrics()["pids"]?.arrayValue?.first?.intValue.map { Int32($0) }
    }
}

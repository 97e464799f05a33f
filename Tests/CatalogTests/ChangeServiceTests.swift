import Basics
import Contracts
import Dispatch
import JSONValue
import Messaging
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

@Suite(.serialized, .timeLimit(.minutes(5)))
struct ChangeServiceTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("changes") }

    private func create(_ source: ResourceSource) -> ChangeRequest {
        .createAsset(.init(ref: "p", resources: [NewResource(source: source)]))
    }

    @Test func `the digest covers parameters and attachments, and a passed digest replaces both`() {
        let changes = PerformChanges(requests: [.createCollection(.init(title: "A"))], transaction: "t")
        let digest = RequestDigest.digest(of: changes, [[1], [2]])
        #expect(digest.count == 32)
        #expect(RequestDigest.digest(of: changes, [[1], [2]]) == digest)
        #expect(RequestDigest.digest(of: changes, [[1]]) != digest)
        #expect(RequestDigest.digest(of: changes, [[1, 2]]) != digest)
        #expect(RequestDigest.digest(of: changes, [[2], [1]]) != digest)
        var others = changes
        others.requests = [.createCollection(.init(title: "B"))]
        #expect(RequestDigest.digest(of: others, [[1], [2]]) != digest)

        var (passed, same) = (changes, others)
        (passed.requestDigest, same.requestDigest) = ("d", "d")
        #expect(RequestDigest.digest(of: passed, [[1]]) == RequestDigest.digest(of: same, []))
        same.requestDigest = "e"
        #expect(RequestDigest.digest(of: passed, []) != RequestDigest.digest(of: same, []))
    }

    @Test func `a consent is to the requests and their bytes, whatever the client's digest and upload names are`() {
        func consentDigest(_ upload: String, _ filename: String, digest: String? = nil, bytes: String = "1") -> [UInt8]
        {
            let file = NewResource(source: .upload(upload), originalFilename: filename)
            var edit = ChangeRequest.EditAsset(
                id: .none,
                render: NewResource(source: .upload(upload)),
                adjustmentData: AdjustmentData(formatIdentifier: "f", formatVersion: "1", attachment: 0)
            )
            edit.pairedVideo = file
            var create = ChangeRequest.CreateAsset(resources: [file], sidecar: file)
            create.edit = NewEdit(render: file, adjustmentData: edit.adjustmentData)
            let requests: [ChangeRequest] = [.createAsset(create), .editAsset(edit)]
            let changes = PerformChanges(requests: requests, transaction: "t", requestDigest: digest)
            return RequestDigest.consentDigest(of: changes, [[1]], uploads: [upload: bytes])
        }
        let first = consentDigest("u1", "a.jpg", digest: "d")
        #expect(
            consentDigest("u2", "a.jpg", digest: "d") == first && consentDigest("u2", "a.jpg", digest: "e") == first
        )
        #expect(consentDigest("u1", "b.jpg", digest: "d") != first)
        #expect(consentDigest("u1", "a.jpg", digest: "d", bytes: "2") != first)
    }

    @Test func `the input of a digest is the request with the members of every object sorted`() throws {
        var random = SeededRandom(named: "digests")
        let id = ObjectID(.asset, milliseconds: 1, using: &random)
        var requests: [ChangeRequest] = [
            .updateAsset(.init(id: .placeholder("p"))), .updateAsset(.init(id: .id(id), addKeywords: ["b", "a"])),
            .updateAsset(.init(id: .id(id), set: AssetPatch(creationDate: .some(nil), caption: "c", rating: 1))),
            .trashAssets(.init(ids: [id])), .createCollection(.init(ref: "p", title: "A")),
            .createAsset(.init(resources: [], addKeywords: ["b"], removeKeywords: ["a"])),
        ]
        for isFavorite in [nil, true, false] {
            for isHidden in [nil, true, false] {
                for rating in [nil, 3] {
                    let patch = AssetPatch(isFavorite: isFavorite, isHidden: isHidden, rating: rating)
                    requests.append(.updateAsset(.init(id: .id(id), set: patch)))
                    requests.append(.updateAsset(.init(id: .id(id), set: patch, ifRevision: Revision(7))))
                }
            }
        }
        // A new member of the request has to be part of the digest too.
        let members = ["requests", "client", "transaction", "onBehalfOf", "requestDigest", "recall"]
        #expect(PerformChanges.table.fields.map(\.name) == members)
        for changes in [
            PerformChanges(requests: requests), PerformChanges(requests: [], client: "a\"b", transaction: "t"),
            PerformChanges(requests: requests, client: "c"), PerformChanges(requests: requests, transaction: "t"),
            PerformChanges(requests: requests, client: "c", transaction: "t", onBehalfOf: "uid:1"),
        ] {
            #expect(
                String(decoding: RequestDigest.canonical(changes), as: UTF8.self) == changes.json.canonical.text
            )
        }
    }

    @Test(.spec("T-27", "T-40"))
    func `a client that may only add changes the keywords of what it adds`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)], set: AssetPatch(keywords: ["a", "b"]))[0]
            let create = ChangeRequest.CreateAsset(
                ref: "p",
                resources: [NewResource(source: .attachment(0))],
                set: AssetPatch(keywords: ["a", "b"]),
                addKeywords: ["c"],
                removeKeywords: ["a"]
            )
            let context = RequestContext(
                attachments: [image(1)],
                identity: "key:ann",
                cachedPermission: CachedPermission(Permission(.addOnly).byte)
            )
            let changes = PerformChanges(requests: [.createAsset(create)])
            let reply = try await catalog.service.handler.changes.perform(changes, context)
            let new = try #require(try PerformChanges.Result(json: JSON(parsing: reply)).id("p"))
            #expect(try await catalog.asset(new).keywords == ["b", "c"])
            #expect(try await catalog.asset(id).keywords == ["a", "b"], "its bytes became another asset")
        }
    }

    @Test func `changes wait in the order of their arrival, and other requests are answered meanwhile`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let (writer, gate) = (catalog.service.writer, DispatchSemaphore(value: 0))
            try await catalog.holdWriter(until: gate)
            defer { gate.signal() }
            var waiting: [Task<Int64, any Error>] = []
            for number in 0..<20 {
                waiting.append(
                    Task { try await catalog.perform([.createCollection(.init(title: "\(number)"))]).sequence }
                )
                try await writer.waitUntilQueued(number + 1, releasing: gate)
            }
            #expect(try await catalog.call(Health()).isHealthy)
            gate.signal()
            var sequences: [Int64] = []
            for task in waiting { sequences.append(try await task.value) }
            #expect(zip(sequences, sequences.dropFirst()).allSatisfy { $1 == $0 + 1 }, "\(sequences)")
        }
    }

    @Test func `a repeated transaction does not need its bytes again`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let name = try await catalog.call(BeginUpload()).upload
            _ = try await catalog.call(AppendUpload(upload: name, offset: 0), attachments: [image(1)])
            _ = try await catalog.call(FinishUpload(upload: name))
            let first = try await catalog.perform([create(.upload(name))], transaction: "t")
            _ = try await catalog.call(CancelUpload(upload: name))
            #expect(try await catalog.perform([create(.upload(name))], transaction: "t").json == first.json)
            let fresh = await rpcError { try await catalog.perform([create(.upload(name))], transaction: "u") }
            #expect(fresh?.errorCode == .handleExpired)
        }
    }

    @Test func `an outcome is recalled by its id and digest, and nothing is performed`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            func recall(_ transaction: String, digest: String) async throws -> JSON {
                var recall = PerformChanges(requests: [], client: "test", transaction: transaction, recalls: true)
                recall.requestDigest = digest
                return try await catalog.call(recall).json
            }
            let album = ChangeRequest.createCollection(.init(ref: "c", title: "A"))
            let result = try await catalog.call(
                PerformChanges(requests: [album], client: "test", transaction: "t", requestDigest: "d")
            )
            #expect(try await recall("t", digest: "d") == result.json)
            let plain = try await catalog.perform([album], transaction: "v")
            for requests in [[album], []] {
                let recalled = PerformChanges(requests: requests, client: "test", transaction: "v", recalls: true)
                #expect(try await catalog.call(recalled).json == plain.json)
            }
            let other = await rpcError { try await recall("t", digest: "e") }
            #expect(other?.errorCode == .idReused)
            let unknown = await rpcError { try await recall("u", digest: "d") }
            #expect(unknown?.errorCode == .identifierNotFound)
            #expect(try await catalog.history().count == 2)
        }
    }

    @Test func `only a service may act for other clients`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let changes = PerformChanges(requests: [.createCollection(.init(title: "A"))], onBehalfOf: "key:ann")
            let stranger = RequestContext(identity: "key:mallory")
            let refused = await rpcError {
                try await catalog.service.handler.changes.perform(changes, stranger)
            }
            #expect(refused?.errorCode == .accessDenied)
            let history = try await catalog.history()
            #expect(history.isEmpty)
        }
    }

    @Test func `a file is read if the asset of which it is a duplicate is deleted before the commit`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            try await catalog.perform([.trashAssets(.init(ids: [id]))])
            // Holds the writer, so that the deletion and the duplicate wait in its queue, in this order.
            let (writer, gate) = (catalog.service.writer, DispatchSemaphore(value: 0))
            try await catalog.holdWriter(until: gate)
            defer { gate.signal() }
            async let deletion = catalog.perform([.deleteAssets(.init(ids: [id]))])
            try await writer.waitUntilQueued(1, releasing: gate)
            async let duplicate = catalog.perform([create(.attachment(0))], attachments: [image(1)])
            try await writer.waitUntilQueued(2, releasing: gate)
            gate.signal()
            _ = try await deletion
            let result = try await duplicate
            #expect(result.duplicates.isEmpty)
            #expect(writer.metrics.refused == 1, "the first attempt")
            let new = try #require(result.id("p"))
            #expect(new != id)
            #expect(try await catalog.asset(new).pixelWidth == 32)
        }
    }

    @Test func `a client whose transactions fill the queue does not block another client`() async throws {
        try await CatalogFixture.with(folder, { $0.writeQueue = 9 }) { catalog in
            let (writer, gate) = (catalog.service.writer, DispatchSemaphore(value: 0))
            try await catalog.holdWriter(until: gate)
            defer { gate.signal() }
            let connection = try catalog.connect()
            // None of the assets exists: a transaction that waits is refused within its commit.
            let trash = PerformChanges(
                requests: [.trashAssets(.init(ids: (0..<200).map { RandomEntities.id(.asset, $0) }))],
                client: "test"
            )
            try await withThrowingTaskGroup(of: Void.self) { group in
                for count in 1...9 {
                    group.addTask { _ = await rpcError { try await catalog.call(trash) } }
                    try await writer.waitUntilQueued(count, releasing: gate)
                }
                let refused = await rpcError { try await catalog.call(trash) }
                #expect(refused?.errorCode == .busy)
                group.addTask {
                    let error = await rpcError { try await connection.call(PerformChanges.method, trash.json) }
                    #expect(error != nil && error?.errorCode != .busy)
                }
                try await writer.waitUntilQueued(10, releasing: gate)
                gate.signal()
                try await group.waitForAll()
            }
        }
    }

    @Test func `one commit has transactions with at most 512 entities in total, or a single larger one`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let (writer, gate) = (catalog.service.writer, DispatchSemaphore(value: 0))
            try await catalog.holdWriter(until: gate)
            defer { gate.signal() }
            let before = writer.metrics
            var sizes = Array(repeating: 200, count: 6)
            sizes.append(900)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, size) in sizes.enumerated() {
                    let ids = (0..<size).map { RandomEntities.id(.asset, number * 1000 + $0) }
                    group.addTask {
                        // None of the assets exists: the transaction is refused within its commit.
                        _ = await rpcError { try await catalog.perform([.trashAssets(.init(ids: ids))]) }
                    }
                    try await writer.waitUntilQueued(number + 1, releasing: gate)
                }
                gate.signal()
                try await group.waitForAll()
            }
            #expect(writer.metrics.refused - before.refused == 7)
            // Two of 200 entities are at most 512, three are more. The catalog's own transactions may add a commit;
            // without the limit all would be one.
            #expect((4...5).contains(writer.metrics.commits - before.commits))
        }
    }
}

extension CatalogFixture {
    /// Makes the writer wait for a signal, once it has committed the transaction that the catalog makes at its start.
    func holdWriter(until gate: DispatchSemaphore) async throws {
        while service.writer.metrics.commits == 0 { try await Task.sleep(for: .milliseconds(5)) }
        await service.store.holdWriter(until: gate)
    }
}

extension TransactionWriter {
    /// Waits until `count` transactions wait for a writer that a test holds.
    ///
    /// - Throws: at the test's time limit; the writer then continues, because the transactions could not end otherwise
    func waitUntilQueued(_ count: Int, releasing gate: DispatchSemaphore) async throws {
        do {
            while queueDepth < count { try await Task.sleep(for: .milliseconds(5)) }
        } catch {
            gate.signal()
            throw error
        }
    }
}

import JSONValue
import Contracts
import Glibc
import Messaging
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of the catalog's record of bytes that crashed or hung a worker.
@Suite(.timeLimit(.minutes(5)))
struct QuarantineTests {
    private let digest = String(repeating: "ab", count: 32)

    private func fault(_ digest: String, _ failures: Int = 1) -> ReportWorkerFault {
        ReportWorkerFault(
            digest: digest,
            name: "worker_crashed",
            reason: "signal 11",
            service: "editor",
            failures: failures
        )
    }

    @Test func `bytes are quarantined after the second failure, and lifting removes the entry`() async throws {
        let fixture = try StoreFixture()
        let quarantine = try await Quarantine(store: fixture.store, services: .noServices, now: { 7 })
        #expect(try await quarantine.report(fault(digest)).isQuarantined == false)
        #expect(quarantine.entry(digest) == nil)
        let second = try await quarantine.report(fault(digest))
        #expect(second.isQuarantined && second.failures == 2)
        let entry = try #require(quarantine.entry(digest))
        #expect((entry.failures, entry.reason, entry.service, entry.date) == (2, "signal 11", "editor", 7))
        #expect(entry.rpcError(of: "a.jpg").errorCode == .quarantined)
        #expect(entry.rpcError(of: "a.jpg").message.contains("a.jpg"))

        let after = try await Quarantine(store: fixture.store, services: .noServices, now: { 8 })
        #expect(after.entry(digest) == entry, "the entry survives a restart")
        #expect(try await after.list(ListQuarantine()).resources == [entry])
        #expect(try await after.lift(LiftQuarantine(digest: digest)).lifted == 1)
        #expect(after.entry(digest) == nil)
        #expect(try await after.report(fault(digest)).failures == 1)
    }

    @Test
    func `two failures of one request quarantine the bytes, and a page has the entries of its assets`() async throws {
        let fixture = try StoreFixture()
        let quarantine = try await Quarantine(store: fixture.store, services: .noServices, now: { 7 })
        #expect(try await quarantine.report(fault(digest, 2)).isQuarantined)
        var asset = Asset(id: .none)
        asset.resources = [
            AssetResource(type: .photo, digest: digest, size: 1, contentType: "public.jpeg"),
            AssetResource(type: .fullSizePhoto, digest: "c", size: 1, contentType: "public.jpeg"),
        ]
        #expect(quarantine.entries(of: [asset, asset]).map(\.digest) == [digest])
        #expect(try await quarantine.lift(LiftQuarantine(digest: nil)).lifted == 1)
        #expect(quarantine.entries(of: [asset]).isEmpty)
    }

    @Test func `the number of entries is bounded, and the latest are kept`() async throws {
        let fixture = try StoreFixture()
        let dates = try await fixture.store.changeQuarantine { store in
            for number in 0..<20 {
                let digits = String(number, radix: 16)
                let digest = String(repeating: "0", count: 64 - digits.count) + digits
                _ = try store.add(
                    ReportWorkerFault(digest: digest, name: "n", reason: "r", service: "s", failures: 2),
                    date: Int64(number),
                    maxEntries: 5
                )
            }
            return try store.entries(atLeast: 1).map(\.date)
        }
        #expect(dates == [19, 18, 17, 16, 15])
    }

    @Test func `a repair whose follow-up was lost is completed by the next import of the bytes`() async throws {
        let folder = try TemporaryFolder("healed")
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let digest = ResourceDigest(of: image(1))
            let (resources, quarantine) = (catalog.service.resources, catalog.service.handler.quarantine)
            let mark = DamageReport(asset: id, digest: digest.text, damage: "damaged from row 8 of 24 on")
            _ = try await catalog.service.writer.perform(.marking([mark]))
            #expect(try await quarantine.report(fault(digest.text, 2)).isQuarantined)
            #expect(chmod(resources.path(of: digest), 0o644) == 0)
            #expect(truncate(resources.path(of: digest), 100) == 0)
            // The catalog was killed when the file was replaced.
            #expect(try resources.put(bytes: image(1)).isHealed)

            let create = ChangeRequest.createAsset(.init(ref: "p", resources: [NewResource(source: .attachment(0))]))
            let repeated = try await catalog.perform([create], attachments: [image(1)])
            #expect(repeated.id("p") == id && repeated.healed == [digest.text])
            #expect(quarantine.entry(digest.text) == nil)
            #expect(try await catalog.asset(id).originalResource?.damage == nil)
            #expect(try await catalog.perform([create], attachments: [image(1)]).healed == [])
        }
    }

    /// Changes a byte of a stored file without changing its times.
    private func rot(_ path: String) {
        var status = stat()
        #expect(lstat(path, &status) == 0)
        #expect(chmod(path, 0o644) == 0)
        let file = open(path, O_RDWR)
        var byte = UInt8(0)
        #expect(pread(file, &byte, 1, 100) == 1)
        byte = ~byte
        #expect(pwrite(file, &byte, 1, 100) == 1)
        var times = [status.st_atim, status.st_mtim]
        #expect(futimens(file, &times) == 0)
        close(file)
    }

    @Test func `bytes that an add-only client asks to verify replace a stored file that has rotted`() async throws {
        let folder = try TemporaryFolder("rotten")
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let digest = ResourceDigest(of: image(1))
            let (resources, quarantine) = (catalog.service.resources, catalog.service.handler.quarantine)
            let mark = DamageReport(asset: id, digest: digest.text, damage: "damaged from row 8 of 24 on")
            _ = try await catalog.service.writer.perform(.marking([mark]))
            rot(resources.path(of: digest))
            let resource = NewResource(source: .attachment(0), verifies: true)
            let context = RequestContext(
                attachments: [image(1)],
                identity: "key:ann",
                cachedPermission: CachedPermission(Permission(.addOnly).byte)
            )
            let changes = PerformChanges(requests: [.createAsset(.init(ref: "p", resources: [resource]))])
            let reply = try await catalog.service.handler.changes.perform(changes, context)
            let result = try PerformChanges.Result(json: JSON(parsing: reply))
            #expect(result.healed == [])
            #expect(try resources.readAll(digest, limit: 1 << 20) == image(1))
            // The client does not wait for the follow-up, which is the next transaction.
            #expect(await catalog.service.tail.wait(for: result.token.sequence + 1))
            #expect(try await catalog.asset(id).originalResource?.damage == nil)

            rot(resources.path(of: digest))
            #expect(try await quarantine.report(fault(digest.text, 2)).isQuarantined)
            let (uploads, name) = (catalog.service.uploads, "key:ann")
            let upload = try await uploads.begin(BeginUpload(), identity: name).upload
            _ = try await uploads.append(AppendUpload(upload: upload, offset: 0), [image(1)], identity: name)
            let finish = FinishUpload(upload: upload, verifies: true)
            #expect(try await !uploads.finish(finish, identity: name, hidesPresence: true).isHealed)
            #expect(try resources.readAll(digest, limit: 1 << 20) == image(1))
            // The client does not wait for the follow-up.
            while quarantine.entry(digest.text) != nil, !Task.isCancelled { await Task.yield() }
            #expect(quarantine.entry(digest.text) == nil)
        }
    }

    @Test func `only services report failures`() async throws {
        let fixture = try StoreFixture()
        let services = ServiceIdentities(ownUID: 1) { $0 == "key:editor" }
        let quarantine = try await Quarantine(store: fixture.store, services: services, now: { 7 })
        let refused = await rpcError { try await quarantine.report(fault(digest, 2), from: "key:ann") }
        #expect(refused?.errorCode == .accessDenied)
        #expect(try await quarantine.report(fault(digest, 2), from: "key:editor").isQuarantined)
    }

    @Test func `only the owner may lift the quarantine, on the host or with a key`() throws {
        let access = try #require(CatalogRequest.access(of: LiftQuarantine.method))
        let roles = Permission.Role.allCases.filter { Permission($0).allows(access) }
        #expect(roles == [.owner, .host])
    }

    @Test func `a value that is not a digest is refused`() async throws {
        let fixture = try StoreFixture()
        let quarantine = try await Quarantine(store: fixture.store, services: .noServices, now: { 7 })
        await #expect(throws: (any Error).self) { try await quarantine.report(fault("../../etc")) }
    }
}

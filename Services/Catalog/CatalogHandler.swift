import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import Storage
import Synchronization

/// Dispatches the catalog's requests, one line per method.
struct CatalogHandler: RequestHandler {
    let barrier: SequenceBarrier
    let fetches: FetchService
    let keys: KeyDelivery
    let changes: ChangeService
    let history: HistoryService
    let edits: EditReader
    let delivery: ResourceDelivery
    let exports: ResourceExport
    let storage: StorageService
    let jobs: UploadJobService
    let uploads: UploadRegistry
    let quarantine: Quarantine
    let backups: BackupService
    let rescans: RescanService
    let collector: ResourceCollector
    let grants: GrantService
    let availability: LibraryAvailability
    let state: ServiceState
    let logger: Logger

    func limits(of method: String) -> MethodLimits { CatalogRequest.limits(of: method) }

    /// Small changes are read on the poll thread, in the order in which they arrive, and answered on the thread of the
    /// commits, so that each of them changes threads only twice.
    func executor(for request: IncomingRequest, _ context: RequestContext) -> (any TaskExecutor)? {
        guard request.method == PerformChanges.method, context.attachments.isEmpty,
            SmallChange.areSmall(request.params["requests"])
        else { return nil }
        // For any other client, the objects that it may name may have to be read from disk.
        let seesEverything = context.cachedPermission.map { Permission(byte: $0.value).seesEverything } ?? true
        let isOwn = request.params["onBehalfOf"] == nil
        return SmallChangeExecutor(changes.writer.executor, beginsAtOnce: seesEverything && isOwn)
    }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        do {
            // Every `ServiceRequest` has this initialiser, which reads the table of its methods.
            let call = try CatalogRequest(method: request.method, params: request.params)
            guard let client = call.onBehalfOf else { return try await answer(call, context) }
            return try await WorkSource.$current.withValue(WorkSource(of: context, onBehalfOf: client)) {
                try await answer(call, context)
            }
        } catch {
            if let error = error as? StorageError, let cause = availability.note(error) { throw cause }
            if CatalogErrorMapping.isFault(error) {
                logger.error("a request failed", metadata: ["method": "\(request.method)", "error": "\(error)"])
            }
            throw CatalogErrorMapping.rpcError(error)
        }
    }

    func connectionEnded(_ connection: ConnectionID) { edits.claims.connectionEnded(connection) }

    /// Answers `health` at once.
    func replyAtOnce(to request: IncomingRequest, _ context: RequestContext) -> Reply? {
        state.replyAtOnce(to: request)
    }

    private func answer(
        _ call: CatalogRequest,
        _ context: RequestContext
    ) async throws -> Reply {
        let identity = context.identity
        try availability.check(call.need)
        // Read once: the view does not change while the request runs.
        let view = grants.view(of: context)
        if let token = call.atLeast { try await barrier.wait(for: token, context) }
        switch call {
        case .fetchAssets(let fetch): return try await fetches.assetPage(fetch, identity: identity, view: view)
        case .fetchCollections(let fetch):
            return Reply(
                fetch.projection.applied(to: try await fetches.collections(fetch, identity: identity, view: view).json)
            )
        case .fetchLists(let fetch):
            return Reply(
                fetch.projection.applied(to: try await fetches.lists(fetch, identity: identity, view: view).json)
            )
        case .counts(let counts): return Reply(try await fetches.counts(counts, identity: identity, view: view).json)
        case .find(let find): return Reply(try await fetches.find(find, identity: identity, view: view).json)
        case .objects(let objects): return try await fetches.objects(objects, identity: identity, view: view)
        case .keyAssets(let request):
            let projection = Projection(dates: request.dates)
            return Reply(
                projection.applied(to: try await fetches.keyAssets(request, identity: identity, view: view).json)
            )
        case .duplicates(let page): return Reply(try await fetches.duplicates(page).json)
        case .can(let can): return Reply(try await fetches.can(can, view: view).json)
        case .toCloud(let ids): return Reply(try await fetches.toCloud(ids, view: view).json)
        case .toLocal(let ids): return Reply(try await fetches.toLocal(ids, view: view).json)
        case .createTransient(let new):
            return Reply(try await fetches.createTransient(new, identity: identity, view: view).json)
        case .releaseTransient(let release): return Reply(fetches.releaseTransient(release, identity: identity).json)
        case .details(let details):
            let view = try self.view(onBehalfOf: details.onBehalfOf, context) ?? view
            return Reply(try await fetches.details(details, identity: identity, view: view).json)
        case .difference(let diff):
            return Reply(try await fetches.difference(diff, identity: identity, view: view).json)
        case .fetchKeys(let fetch):
            let isService = changes.services.includes(identity)
            let view = try self.view(onBehalfOf: fetch.onBehalfOf, context)
            return try await keys.keys(fetch, context, isService: isService, view: view)
        case .perform(let transaction):
            guard let publisher = transaction.onBehalfOf else {
                return Reply(encoded: try await changes.perform(transaction, context))
            }
            // The closure captures only `changes`: a copy of the handler would retain all its parts.
            let claims = edits.claims
            let reply = try await claims.claimEdits(of: transaction, publisher, context.connection) { [changes] in
                try await changes.perform(transaction, context)
            }
            return Reply(encoded: reply)
        case .since(let page):
            let view = try self.view(onBehalfOf: page.onBehalfOf, context) ?? view
            return Reply(encoded: try await history.since(page, view: view).encoded)
        case .follow(let stream): return try await history.follow(stream, context, view: view)
        case .token: return Reply(try await history.token().json)
        case .editsStatus(let status):
            // An editor acts on the reply, and a standby may not have the edit yet.
            if status.onBehalfOf != nil { try refuseAtStandby() }
            return Reply(try await edits.status(status, context).json)
        case .editsPending(let page):
            // The claims of editors are in the memory of the catalog that writes.
            try refuseAtStandby()
            return Reply(try await edits.pending(page, context).json)
        case .supports(let format): return Reply(ResourceRules.supports(format).json)
        case .readResource(let read):
            let isService = changes.services.includes(identity)
            return try await delivery.read(read, context, view: view, isService: isService)
        case .exportResource(let export): return try await exports.export(export, context, view: view)
        case .downloadResource(let download):
            return Reply(try await storage.download(download, context, view: view).json)
        case .storageStatus(let status): return Reply(try await storage.status(status).json)
        case .storageVerify(let verify): return Reply(try await storage.verify(verify, context.notifier).json)
        case .storageKeep(let keep): return Reply(try await storage.keep(keep, context).json)
        case .storageRetry(let retry): return Reply(try await storage.retry(retry).json)
        case .createJobs(let create):
            return Reply(try await jobs.create(create, for: jobClient(context, view)).json)
        case .listJobs(let list):
            let time = context.microsecondsToAnswer(at: barrier.clock.nowMicroseconds())
            let client = { jobClient(context, grants.view(of: context)) }
            return Reply(try await jobs.list(list, for: client, within: time).json)
        case .updateJobs(let update):
            return Reply(try await jobs.update(update, for: jobClient(context, view)).json)
        case .beginUpload(let new):
            // A standby could not use the bytes, and they would count against the client's limits until the lease ends.
            try refuseAtStandby()
            return Reply(try await uploads.begin(new, identity: identity).json)
        case .appendUpload(let next):
            return Reply(try await uploads.append(next, context.attachments, identity: identity).json)
        case .finishUpload(let upload):
            var finished = try await uploads.finish(upload, identity: identity, hidesPresence: view != nil)
            // A client that may not read the whole library does not learn which bytes it had.
            if view != nil { finished.isHealed = false }
            return Reply(finished.json)
        case .cancelUpload(let upload):
            return Reply(try await uploads.cancel(upload, identity: identity, hidesPresence: view != nil).json)
        case .reportWorkerFault(let fault): return Reply(try await quarantine.report(fault, from: identity).json)
        case .listQuarantine(let list): return Reply(try await quarantine.list(list).json)
        case .liftQuarantine(let lift): return Reply(try await quarantine.lift(lift).json)
        case .libraryStatus(let status):
            return Reply(try await availability.answer(status, context, clock: barrier.clock).json)
        case .backup(let backup): return Reply(try await backups.backup(backup, context).json)
        case .rescan(let rescan): return Reply(try await rescans.rescan(rescan, context).json)
        case .collect(let collect): return Reply(try await collector.collect(collect, identity: identity).json)
        case .openSession(let session): return Reply(try await grants.open(session, context).json)
        case .listGrants(let list): return Reply(grants.list(list).json)
        case .pendingGrants:
            // The questions are in the memory of the catalog that writes.
            try refuseAtStandby()
            return Reply(grants.pending().json)
        case .approveGrant(let decision): return Reply(try await grants.approve(decision, by: identity).json)
        case .denyGrant(let decision): return Reply(try await grants.deny(decision, by: identity).json)
        case .limitGrant(let decision): return Reply(try await grants.limit(decision, by: identity).json)
        case .revokeGrant(let decision): return Reply(try await grants.revoke(decision, by: identity).json)
        case .grantHistory(let page): return Reply(try await grants.history(page).json)
        case .grantStatus(let status):
            try await barrier.wait(for: status, context)
            return Reply(try await grants.status(status).json)
        case .discover: return Reply(state.document)
        case .health: return Reply(await state.health().json)
        case .figures: return Reply(await state.counts())
        }
    }

    private func refuseAtStandby() throws {
        if let refusal = changes.store.election?.refusal { throw refusal }
    }

    private func jobClient(_ context: RequestContext, _ view: LimitedView?) -> UploadJobService.Client {
        UploadJobService.Client(context, view: view, addOnly: grants.addOnlyClient(of: context))
    }

    /// Returns the view of the client on whose behalf a service sends a request; nil if it names none.
    private func view(onBehalfOf client: String?, _ context: RequestContext) throws -> LimitedView? {
        guard let client else { return nil }
        try changes.services.check(context.identity, for: "onBehalfOf")
        return try grants.view(onBehalfOf: client)
    }
}

extension CatalogRequest {
    /// The client on whose behalf a service sends the request; nil for all other requests.
    fileprivate var onBehalfOf: String? {
        switch self {
        case .details(let details): details.onBehalfOf
        case .fetchKeys(let fetch): fetch.onBehalfOf
        case .perform(let transaction): transaction.onBehalfOf
        case .since(let page): page.onBehalfOf
        case .editsStatus(let status): status.onBehalfOf
        default: nil
        }
    }

    /// The token that the catalog has to reach before it answers; nil if there is none.
    fileprivate var atLeast: ChangeToken? {
        switch self {
        case .fetchAssets(let request): request.atLeast
        case .fetchCollections(let request): request.atLeast
        case .fetchLists(let request): request.atLeast
        case .counts(let request): request.atLeast
        case .find(let request): request.atLeast
        case .objects(let request): request.atLeast
        case .keyAssets(let request): request.atLeast
        case .duplicates(let request): request.atLeast
        default: nil
        }
    }
}

// MARK: - Small changes

/// Decides which transactions are small: they are read on the poll thread and answered on the thread of the commits.
enum SmallChange {
    /// Returns true if the requests of a transaction are few and small.
    static func areSmall(_ requests: JSON?) -> Bool {
        guard let requests = requests?.arrayValue else { return false }
        return requests.count <= maxElements && requests.allSatisfy(isSmall)
    }

    /// The maximum number of changes of a small transaction, and of elements of a list in one.
    private static let maxElements = 16
    /// The maximum number of bytes of a text that is read on the poll thread.
    private static let maxTextBytes = 4096
    /// The maximum number of members of a change and of its properties: a valid one has fewer, and a malformed one with
    /// more is not read on the poll thread.
    private static let maxMembers = 64

    /// Returns true if a change has neither bytes nor a list to compare with, names few objects, and has short texts.
    private static func isSmall(_ change: JSON) -> Bool {
        let members = change.objectValue?.members ?? []
        return members.count <= maxMembers
            && members.allSatisfy { name, value in
                guard name != "resources", name != "render", name != "snapshot" else { return false }
                guard let members = value.objectValue?.members else { return isShort(value) }
                return members.count <= maxMembers && members.allSatisfy { isShort($1) }
            }
    }

    private static func isShort(_ value: JSON) -> Bool {
        switch value {
        case .string(let text): text.utf8.count <= maxTextBytes
        case .array(let values): values.count <= maxElements && values.allSatisfy(isShort)
        case .object(let object): object.members.isEmpty
        default: true
        }
    }
}

/// The executor of the task of one small change. The task begins on the thread that creates it, the poll thread, where
/// it reads the request and adds its transaction to those that wait; it continues on the thread of the commits.
///
/// So small changes of a connection wait in the order of their arrival, unless one waits for something else first, such
/// as consent. The thread of the commits, which is the busiest, does not read requests.
final class SmallChangeExecutor: TaskExecutor, Sendable {
    private let writer: WriterExecutor
    private let hasBegun: Atomic<Bool>

    /// - Parameter beginsAtOnce: false if the first step of the task may block; then the whole task runs on the thread
    ///   of the commits
    init(_ writer: WriterExecutor, beginsAtOnce: Bool = true) {
        self.writer = writer
        hasBegun = Atomic(!beginsAtOnce)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        guard hasBegun.exchange(true, ordering: .acquiringAndReleasing) else {
            return job.runSynchronously(on: asUnownedTaskExecutor())
        }
        writer.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

import Basics
import Contracts
import Hosting
import Messaging
import ObjectStorage
import PhotoModel
import Storage

/// Implements the methods `jobs.*`: uploads and downloads that clients request, and that are kept until they are
/// acknowledged (T-34).
///
/// Each client has its own jobs; the owner sees those of all clients.
struct UploadJobService: Sendable {
    let store: LibraryStore
    let resources: ResourceStore
    let remote: RemoteStorage?
    let changes: UploadJobChanges
    let clock: MonotonicClock

    init(_ store: LibraryStore, _ resources: ResourceStore, _ remote: RemoteStorage?, clock: MonotonicClock) {
        (self.store, self.resources, self.remote, self.clock) = (store, resources, remote, clock)
        changes = remote?.jobChanges ?? UploadJobChanges()
    }

    /// The client of a request.
    struct Client: Sendable {
        let identity: String
        let seesAll: Bool
        /// The view of an identity with a limited grant; nil for the whole library.
        let view: LimitedView?
        /// The client, if it may only add: its jobs are for the assets that it has added.
        let addOnly: AddOnlyClient?

        init(_ context: RequestContext, view: LimitedView?, addOnly: AddOnlyClient?) {
            identity = context.identity
            // Only requests from connections have a cached permission.
            let role = context.cachedPermission.map { Permission(byte: $0.value).role } ?? .host
            seesAll = role == .owner || role == .host || role == .service
            self.view = addOnly == nil ? view : nil
            self.addOnly = addOnly
        }

        /// The jobs that the client sees; nil for all.
        fileprivate var filter: UploadJobStore.Filter? { ownFilter ?? (seesAll ? nil : .init(identity)) }

        /// The jobs whose changes the client is notified of; nil for all. The version of an add-only client does not
        /// increase with the jobs of others.
        fileprivate var ownFilter: UploadJobStore.Filter? { addOnly.map { .init($0) } }

        fileprivate func sees(_ job: UploadJob, _ reader: LibraryReader) throws -> Bool {
            guard seesAll || job.identity == identity else { return false }
            return try view?.contains(job.asset, reader) ?? true
        }

        /// Returns an asset for which the client may create jobs; nil if the client may not see the asset. An add-only
        /// client may create them for the assets that it has added, with the resources that it has sent.
        fileprivate func asset(_ id: ObjectID, _ reader: LibraryReader) throws -> Asset? {
            guard let addOnly else {
                // An asset outside the view is not looked up, so that it takes the same time as an unknown one.
                return try view?.contains(id, reader) == false ? nil : try reader.assets.asset(id)
            }
            let digests = try reader.addedResources.digests(of: id, addedBy: addOnly)
            guard !digests.isEmpty, var asset = try reader.assets.asset(id) else { return nil }
            asset.resources = asset.resources.filter { digests.contains($0.digest) }
            return asset
        }

        /// Returns a job as the client sees it.
        fileprivate func redacted(_ job: UploadJob, _ progress: [ResourceDigest: Double]? = nil) -> UploadJob {
            var job = progress.map(job.with) ?? job
            // The message names the object store, or a file of the library.
            if addOnly != nil { job.message = nil }
            return job
        }
    }

    /// The maximum number of changed jobs in a response to `changedAfter`: a message of the feed has at most 256 KiB.
    private static let maxChanged = 400
    /// The maximum number of jobs in such a response of which only the progress has changed.
    private static let maxPending = 100

    /// Creates a job for each asset.
    ///
    /// - Throws: `limit_exceeded`, `identifier_not_found`, `missing_resource`, and `access_denied` for a download by an
    ///   add-only client; then no job is created
    func create(_ request: CreateUploadJobs, for client: Client) async throws -> UploadJobPage {
        if client.addOnly != nil, request.kind != .upload { throw GrantError.addOnlyCannotDownload(client.identity) }
        let remote = try requireRemoteStorage()
        let resources = resources
        let subjects = try await store.read { reader in
            try request.assets.map { id in
                guard let asset = try client.asset(id, reader) else { throw ResourceError.noAsset(id) }
                let type = request.resourceType
                guard let resource = asset.resource(type), let digest = ResourceDigest(resource.digest) else {
                    throw ResourceError.noResource(id, type, available: asset.resources.map(\.type))
                }
                return UploadJobStore.Subject(
                    asset: id,
                    resourceType: resource.type,
                    digest: digest,
                    isDone: resources.contains(digest)
                )
            }
        }
        let (date, changes) = (remote.now(), changes)
        let page = try await store.changeUploadJobs { jobs in
            let created = try jobs.create(
                request.kind,
                subjects,
                for: client.identity,
                addOnlyKey: client.addOnly?.key,
                date: date
            )
            guard var created else { throw ResourceError.tooManyJobs(limit: UploadJob.limit) }
            if request.kind == .upload {
                // Read within the transaction: the outcome of a running upload is recorded in a later one, so it is
                // not missed.
                let running = changes.progress
                try jobs.setUploading(true, subjects.map(\.digest).filter { running[$0] != nil }, date: date)
                for index in created.indices where running[subjects[index].digest] != nil {
                    if created[index].state == .registered { created[index].state = .pending }
                }
            }
            return UploadJobPage(
                jobs: created.map { client.redacted($0, changes.progress) },
                capacity: try jobs.capacity(of: client.identity),
                version: try jobs.version(of: client.ownFilter)
            )
        }
        changes.noteChange()
        remote.wake()
        return page
    }

    // MARK: Lists

    /// Returns a page of jobs; with `changedAfter`, those that have changed, as soon as there are any.
    ///
    /// - Parameters:
    ///   - client: returns the client with its current access, which may change while the request waits
    ///   - microseconds: the maximum time to wait for a change
    /// - Throws: `limit_exceeded` if too many requests wait; the refusal of a standby that does not know the version
    func list(
        _ request: ListUploadJobs,
        for client: () -> Client,
        within microseconds: Int64
    ) async throws -> UploadJobPage {
        guard let known = request.changedAfter else { return try await page(request, for: client()) }
        var version = known
        let knownProgress = changes.progress
        // A standby follows the history, which has no jobs, so jobs are read every second.
        let interval: Int64 = store.election?.refusal == nil ? .max : 1_000_000
        let answer: UploadJobPage? = try await changes.answer(
            for: client().identity,
            within: microseconds,
            clock,
            every: interval
        ) { isLast in
            let page = try await changed(after: version, knownProgress, request, for: client())
            version = page.version
            return page.jobs.isEmpty && !isLast ? nil : page
        }
        return answer ?? UploadJobPage(version: version)
    }

    private func page(_ request: ListUploadJobs, for client: Client) async throws -> UploadJobPage {
        let progress = changes.progress
        return try await store.read { reader in
            let all = try reader.uploadJobs.all(of: client.filter, after: request.after ?? 0)
            var jobs = try all.filter { try request.includes($0) && client.sees($0, reader) }
            let next = jobs.count > UploadJob.limit ? jobs[UploadJob.limit - 1].id : nil
            jobs = jobs.prefix(UploadJob.limit).map { client.redacted($0, progress) }
            return UploadJobPage(
                jobs: jobs,
                capacity: try reader.uploadJobs.capacity(of: client.identity),
                version: try reader.uploadJobs.version(of: client.ownFilter),
                next: next
            )
        }
    }

    /// Returns the jobs whose state has changed after a version, and those whose progress differs from the known one.
    ///
    /// A version that does not exist yet is from before the library was restored: then all jobs are returned. The
    /// version does not reveal to an add-only client how often the jobs of others have changed.
    ///
    /// - Throws: the refusal of a standby, which unlike the writer cannot know whether the version exists
    private func changed(
        after version: Int64,
        _ knownProgress: [ResourceDigest: Double],
        _ request: ListUploadJobs,
        for client: Client
    ) async throws -> UploadJobPage {
        let progress = changes.progress
        return try await store.read { reader in
            let newest = try client.ownFilter == nil ? reader.uploadJobs.version() : version
            // A replica may not have this version yet, because jobs have no sequence for which reads wait.
            if version > newest, let refusal = store.election?.refusal { throw refusal }
            let start = version > newest ? 0 : version
            let changed = try reader.uploadJobs.changed(after: start, limit: Self.maxChanged, of: client.ownFilter)
            let known = Set(changed?.jobs.map(\.id) ?? [])
            let withProgress = try reader.uploadJobs.pending(of: client.ownFilter).filter { job in
                guard !known.contains(job.id), let digest = ResourceDigest(job.digest) else { return false }
                return progress[digest] != knownProgress[digest]
            }
            let jobs = try ((changed?.jobs ?? []) + withProgress.prefix(Self.maxPending))
                .filter { try request.includes($0) && client.sees($0, reader) }
            return UploadJobPage(
                jobs: jobs.map { client.redacted($0, progress) },
                capacity: try reader.uploadJobs.capacity(of: client.identity),
                version: changed?.version ?? start
            )
        }
    }

    // MARK: Changes

    /// Performs an action on jobs.
    ///
    /// - Throws: `identifier_not_found`, `request_not_supported` if a job does not allow the action; then none is
    ///   changed
    func update(_ request: UpdateUploadJobs, for client: Client) async throws -> UploadJobPage {
        let remote = try requireRemoteStorage()
        let date = remote.now()
        let ids = Set(request.jobs)
        let visible = try await store.read { reader in
            Set(
                try reader.uploadJobs.all(of: client.filter)
                    .filter { try ids.contains($0.id) && client.sees($0, reader) }.map(\.id)
            )
        }
        let page = try await store.changeUploadJobs { jobs in
            // Read again: a job may have ended meanwhile.
            let known = Dictionary(uniqueKeysWithValues: try jobs.all(of: client.filter).map { ($0.id, $0) })
            let selected = try ids.sorted().map { id in
                guard visible.contains(id), let job = known[id] else { throw ResourceError.noJob(id) }
                guard job.allows(request.action) else { throw ResourceError.jobRefused(job, request.action) }
                return job
            }
            try jobs.update(selected, request.action, date: date)
            return UploadJobPage(
                jobs: try jobs.all(of: client.filter).filter { ids.contains($0.id) }.map { client.redacted($0) },
                capacity: try jobs.capacity(of: client.identity),
                version: try jobs.version(of: client.ownFilter)
            )
        }
        changes.noteChange()
        remote.wake()
        return page
    }

    private func requireRemoteStorage() throws -> RemoteStorage {
        guard let remote else { throw ResourceError.noRemoteStorage }
        return remote
    }
}

extension ListUploadJobs {
    fileprivate func includes(_ job: UploadJob) -> Bool {
        jobs?.contains(job.id) != false && action.map { job.allows($0) } != false
    }
}

extension UploadJob {
    /// Returns the job with the progress of its transfer.
    fileprivate func with(_ progress: [ResourceDigest: Double]) -> UploadJob {
        guard state == .pending, let digest = ResourceDigest(digest) else { return self }
        var job = self
        job.progress = progress[digest] ?? 0
        return job
    }
}

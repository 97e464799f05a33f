import Basics
import Contracts
import Hosting
import Messaging
import ObjectStorage
import PhotoModel
import Storage

/// Implements the methods `jobs.*`: uploads and downloads that clients ask for, and that are kept until they are
/// acknowledged (T-34).
///
/// Each client has its own jobs; the owner sees those of all.
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
        /// For an identity with a limited grant, what it sees.
        let view: LimitedView?

        init(_ context: RequestContext, view: LimitedView?) {
            identity = context.identity
            // Only requests from connections have a mark.
            let role = context.accessMark.map { Permission(byte: $0.value).role } ?? .host
            seesAll = role == .owner || role == .host || role == .service
            self.view = view
        }

        /// The identity whose jobs it sees; nil for all.
        fileprivate var filter: String? { seesAll ? nil : identity }

        fileprivate func sees(_ job: UploadJob, _ reader: LibraryReader) throws -> Bool {
            guard seesAll || job.identity == identity else { return false }
            return try view?.contains(job.asset, reader) ?? true
        }
    }

    /// The most jobs of an answer to `changedAfter`, and of those with nothing but progress: a message of the feed has at
    /// most 256 KiB.
    private static let mostChanged = 400
    private static let mostPending = 100

    /// - Throws: `limit_exceeded`, `identifier_not_found`, `missing_resource`; then no job is created
    func create(_ request: CreateUploadJobs, for client: Client) async throws -> UploadJobPage {
        let remote = try required()
        let resources = resources
        let subjects = try await store.read { reader in
            try request.assets.map { id in
                // An asset outside the view is not looked up, so that it costs what an unknown one costs.
                guard try client.view?.contains(id, reader) != false, let asset = try reader.assets.asset(id) else {
                    throw ResourceError.noAsset(id)
                }
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
            guard var created = try jobs.create(request.kind, subjects, for: client.identity, date: date) else {
                throw ResourceError.tooManyJobs(limit: UploadJob.limit)
            }
            if request.kind == .upload {
                // Asked within the transaction: the outcome of an upload that runs now is written after it.
                let running = changes.progress
                try jobs.setUploading(true, subjects.map(\.digest).filter { running[$0] != nil }, date: date)
                for index in created.indices where running[subjects[index].digest] != nil {
                    if created[index].state == .registered { created[index].state = .pending }
                }
            }
            return UploadJobPage(
                jobs: created.map { $0.with(changes.progress) },
                capacity: try jobs.capacity(of: client.identity),
                version: try jobs.version()
            )
        }
        changes.changed()
        remote.wake()
        return page
    }

    // MARK: Lists

    /// - Parameter microseconds: the longest time to wait for a change
    /// - Throws: `limit_exceeded` if too many requests wait
    func list(_ request: ListUploadJobs, for client: Client, within microseconds: Int64) async throws -> UploadJobPage {
        guard let known = request.changedAfter else { return try await page(request, for: client) }
        var version = known
        let seen = changes.progress
        let answer = try await changes.answer(within: microseconds, clock) { isLast -> UploadJobPage? in
            let page = try await changed(after: version, seen, request, for: client)
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
            jobs = jobs.prefix(UploadJob.limit).map { $0.with(progress) }
            return UploadJobPage(
                jobs: jobs,
                capacity: try reader.uploadJobs.capacity(of: client.identity),
                version: try reader.uploadJobs.version(),
                next: next
            )
        }
    }

    /// Returns the jobs whose state has changed after a version, and those with another progress than is known.
    private func changed(
        after version: Int64,
        _ seen: [ResourceDigest: Double],
        _ request: ListUploadJobs,
        for client: Client
    ) async throws -> UploadJobPage {
        let progress = changes.progress
        return try await store.read { reader in
            let changed = try reader.uploadJobs.changed(after: version, limit: Self.mostChanged)
            let known = Set(changed?.jobs.map(\.id) ?? [])
            let moved = try reader.uploadJobs.pending().filter { job in
                guard !known.contains(job.id), let digest = ResourceDigest(job.digest) else { return false }
                return progress[digest] != seen[digest]
            }
            let jobs = try ((changed?.jobs ?? []) + moved.prefix(Self.mostPending))
                .filter { try request.includes($0) && client.sees($0, reader) }
            return UploadJobPage(
                jobs: jobs.map { $0.with(progress) },
                capacity: try reader.uploadJobs.capacity(of: client.identity),
                version: changed?.version ?? version
            )
        }
    }

    // MARK: Changes

    /// - Throws: `identifier_not_found`, `request_not_supported` if a job does not allow the action; then none is changed
    func update(_ request: UpdateUploadJobs, for client: Client) async throws -> UploadJobPage {
        let remote = try required()
        let date = remote.now()
        let wanted = Set(request.jobs)
        let visible = try await store.read { reader in
            Set(
                try reader.uploadJobs.all(of: client.filter)
                    .filter { try wanted.contains($0.id) && client.sees($0, reader) }.map(\.id)
            )
        }
        let page = try await store.changeUploadJobs { store in
            // Read again: a job may have ended meanwhile.
            let known = Dictionary(uniqueKeysWithValues: try store.all(of: client.filter).map { ($0.id, $0) })
            let jobs = try wanted.sorted().map { id in
                guard visible.contains(id), let job = known[id] else { throw ResourceError.noJob(id) }
                guard job.allows(request.action) else { throw ResourceError.jobRefused(job, request.action) }
                return job
            }
            try store.update(jobs, request.action, date: date)
            return UploadJobPage(
                jobs: try store.all(of: client.filter).filter { wanted.contains($0.id) },
                capacity: try store.capacity(of: client.identity),
                version: try store.version()
            )
        }
        changes.changed()
        remote.wake()
        return page
    }

    private func required() throws -> RemoteStorage {
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

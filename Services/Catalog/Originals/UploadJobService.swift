import Contracts
import Hosting
import ObjectStorage
import PhotoModel
import Storage

/// Implements the methods `jobs.*`: uploads and downloads that clients ask for, and that are kept until they are
/// acknowledged (T-34).
struct UploadJobService: Sendable {
    let store: LibraryStore
    let resources: ResourceStore
    let remote: RemoteStorage?

    /// - Throws: `limit_exceeded`, `identifier_not_found`, `missing_resource`; then no job is created
    func create(_ request: CreateUploadJobs) async throws -> UploadJobPage {
        let remote = try required()
        let resources = resources
        let subjects = try await store.read { reader in
            try request.assets.map { id in
                guard let asset = try reader.assets.asset(id) else { throw ResourceError.noAsset(id) }
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
        let date = remote.now()
        let page = try await store.changeUploadJobs { jobs in
            guard let created = try jobs.create(request.kind, subjects, date: date) else {
                throw ResourceError.tooManyJobs(limit: UploadJob.limit)
            }
            return UploadJobPage(jobs: created, capacity: UploadJob.limit - (try jobs.count()))
        }
        remote.wake()
        return page
    }

    func list(_ request: ListUploadJobs) async throws -> UploadJobPage {
        let all = try await store.read { try $0.uploadJobs.all() }
        let wanted = request.jobs.map { Set($0) }
        let jobs = all.filter { job in
            wanted?.contains(job.id) != false && request.action.map { job.allows($0) } != false
        }
        return UploadJobPage(jobs: jobs, capacity: UploadJob.limit - all.count)
    }

    /// - Throws: `identifier_not_found`, `request_not_supported` if a job does not allow the action; then none is changed
    func update(_ request: UpdateUploadJobs) async throws -> UploadJobPage {
        let remote = try required()
        let date = remote.now()
        let page = try await store.changeUploadJobs { store in
            let known = Dictionary(uniqueKeysWithValues: try store.all().map { ($0.id, $0) })
            let jobs = try Set(request.jobs).sorted().map { id in
                guard let job = known[id] else { throw ResourceError.noJob(id) }
                guard job.allows(request.action) else { throw ResourceError.jobRefused(job, request.action) }
                return job
            }
            try store.update(jobs, request.action, date: date)
            let all = try store.all()
            let changed = Set(request.jobs)
            return UploadJobPage(jobs: all.filter { changed.contains($0.id) }, capacity: UploadJob.limit - all.count)
        }
        remote.wake()
        return page
    }

    private func required() throws -> RemoteStorage {
        guard let remote else { throw ResourceError.noRemoteStorage }
        return remote
    }
}

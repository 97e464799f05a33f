public import JSONValue
public import PhotoModel

/// `jobs.create`: registers uploads or downloads of the resources of assets, all of them or none (T-34).
public struct CreateUploadJobs: Request {
    public static let method = "jobs.create"
    /// The assets; one job is registered for each.
    public var assets: [ObjectID]
    /// Upload, or download only.
    public var kind: UploadJob.Kind
    /// Type of the resource; a video's original is used for `photo` if it has no photo.
    public var resourceType: ResourceType

    public init(assets: [ObjectID], kind: UploadJob.Kind = .upload, resourceType: ResourceType = .photo) {
        self.assets = assets
        self.kind = kind
        self.resourceType = resourceType
    }

    public static let table = parameters(
        "Registers uploads of resources to remote storage, or downloads from there; they continue after a restart.",
        blank: CreateUploadJobs(assets: []),
        [
            .required(
                "assets",
                \.assets,
                .list(of: .id(.asset), limit: UploadJob.limit),
                "The assets, a job for each."
            ),
            .defaulted("type", \.kind, .name(UploadJob.Kind.self), "Upload, or download only.", default: .upload),
            .defaulted(
                "resourceType",
                \.resourceType,
                .name(ResourceType.self),
                "Type of the resource.",
                default: .photo
            ),
        ]
    )

    public typealias Result = UploadJobPage
}

/// `jobs.list`: the jobs of the client that are not acknowledged, the oldest first; for the owner those of all (T-34).
///
/// With ``changedAfter`` the request waits for a change, as `library.status` does, and returns only jobs whose state
/// has changed since, and those whose transfer runs. The topic `jobs` has the same pages.
public struct ListUploadJobs: Request {
    public static let method = "jobs.list"
    /// Only jobs for which this action is possible; nil for all.
    public var action: UploadJob.Action?
    /// Only jobs with these numbers; nil for all.
    public var jobs: [Int64]?
    /// Only jobs with higher numbers, for the next page; nil for the first.
    public var after: Int64?
    /// Version of a page: only what has changed since; nil for all, at once.
    public var changedAfter: Int64?

    public init(
        action: UploadJob.Action? = nil,
        jobs: [Int64]? = nil,
        after: Int64? = nil,
        changedAfter: Int64? = nil
    ) {
        self.action = action
        self.jobs = jobs
        self.after = after
        self.changedAfter = changedAfter
    }

    public static let table = parameters(
        "The uploads and downloads that are not acknowledged, the oldest first. With changedAfter, the request waits for a "
            + "change, at most until its deadline. The topic jobs has the same pages.",
        blank: ListUploadJobs(),
        [
            .optional("action", \.action, .name(UploadJob.Action.self), "Only jobs for which this action is possible."),
            .optional(
                "jobs",
                \.jobs,
                .list(of: .integer(0...Int64.max), limit: UploadJob.limit),
                "Only jobs with these numbers."
            ),
            .optional("after", \.after, .integer(0...Int64.max), "Only jobs with higher numbers: next of a page."),
            .optional(
                "changedAfter",
                \.changedAfter,
                .integer(0...Int64.max),
                "version of a page: wait for jobs whose state changes, or whose transfer proceeds."
            ),
        ]
    )

    public typealias Result = UploadJobPage
}

/// Jobs, the oldest first, at most ``UploadJob/limit``.
public struct UploadJobPage: JSONTabled {
    /// The jobs.
    public var jobs: [UploadJob]
    /// The number of further jobs that can be created.
    public var capacity: Int
    /// Increases with each change of a state; for `changedAfter`.
    public var version: Int64
    /// Number of the last job, if there are more; for `after`.
    public var next: Int64?

    public init(jobs: [UploadJob] = [], capacity: Int = 0, version: Int64 = 0, next: Int64? = nil) {
        self.jobs = jobs
        self.capacity = capacity
        self.version = version
        self.next = next
    }

    public static let table = JSONTable(
        "UploadJobs",
        "Uploads and downloads, the oldest first.",
        unknown: .ignored,
        blank: UploadJobPage(),
        [
            .required("jobs", \.jobs, .list(of: .object(UploadJob.self), limit: UploadJob.limit), "The jobs."),
            .required(
                "capacity",
                \.capacity,
                .count(0...UploadJob.limit),
                "The number of further jobs that can be created."
            ),
            .required("version", \.version, .integer(0...Int64.max), "Grows with each change of a state."),
            .optional("next", \.next, .integer(0...Int64.max), "Number of the last job, if there are more."),
        ]
    )
}

/// `jobs.update`: acknowledges, retries or cancels jobs, all of them or none (T-34).
public struct UpdateUploadJobs: Request {
    public static let method = "jobs.update"
    /// The numbers of the jobs.
    public var jobs: [Int64]
    /// The action on them.
    public var action: UploadJob.Action

    public init(jobs: [Int64], action: UploadJob.Action) {
        self.jobs = jobs
        self.action = action
    }

    public static let table = parameters(
        "Acknowledges jobs that have ended, which removes them; retries failed ones, once; or cancels others.",
        blank: UpdateUploadJobs(jobs: [], action: .acknowledge),
        [
            .required("jobs", \.jobs, .list(of: .integer(0...Int64.max), limit: UploadJob.limit), "Their numbers."),
            .required("action", \.action, .name(UploadJob.Action.self), "The action on them."),
        ]
    )

    public typealias Result = UploadJobPage
}

public import JSONValue
public import PhotoModel

/// `jobs.list`: the jobs that are not acknowledged, the oldest first (T-34).
public struct ListUploadJobs: Request {
    public static let method = "jobs.list"
    /// Only jobs for which this action is possible; nil for all.
    public var action: UploadJob.Action?
    /// Only jobs with these numbers; nil for all.
    public var jobs: [Int64]?

    public init(action: UploadJob.Action? = nil, jobs: [Int64]? = nil) {
        self.action = action
        self.jobs = jobs
    }

    public static let table = parameters(
        "The uploads and downloads that are not acknowledged, the oldest first.",
        blank: ListUploadJobs(),
        [
            .optional("action", \.action, .name(UploadJob.Action.self), "Only jobs for which this action is possible."),
            .optional(
                "jobs",
                \.jobs,
                .list(of: .integer(0...Int64.max), limit: UploadJob.limit),
                "Only jobs with these numbers."
            ),
        ]
    )

    public typealias Result = UploadJobPage
}

/// Jobs, the oldest first.
public struct UploadJobPage: JSONTabled {
    public var jobs: [UploadJob]
    /// The number of further jobs that can be created.
    public var capacity: Int

    public init(jobs: [UploadJob] = [], capacity: Int = 0) {
        self.jobs = jobs
        self.capacity = capacity
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
        ]
    )
}

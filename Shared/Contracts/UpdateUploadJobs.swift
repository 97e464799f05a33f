public import JSONValue
public import PhotoModel

/// `jobs.update`: acknowledges, retries or cancels jobs, all of them or none (T-34).
public struct UpdateUploadJobs: Request {
    public static let method = "jobs.update"
    public var jobs: [Int64]
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

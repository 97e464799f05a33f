import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight storage jobs`
struct StorageJobsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "jobs",
        abstract: "Request uploads and downloads of files, and see the state of each.",
        discussion: """
            The catalog uploads every new file by itself. Create a job to learn when certain files are in the object \
            store, or on this machine: it is kept, also over restarts, until it is acknowledged. At most \
            \(UploadJob.limit) jobs of a client are kept. The owner of the library sees the jobs of all clients.
            """,
        subcommands: [List.self, Upload.self, Download.self, Acknowledge.self, Retry.self, Cancel.self],
        defaultSubcommand: List.self
    )

    /// `safelight storage jobs list`
    struct List: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "List the jobs, the oldest first.")
        @Flag(help: "Then print each change, until all jobs have ended.") var watch = false
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let page = try await StorageJobsCommand.readAll(ListUploadJobs(), in: library)
            if page.jobs.isEmpty { output.note("no jobs") }
            try StorageJobsCommand.report(page, output)
            var open = Set(page.jobs.filter { !$0.state.isFinal }.map(\.id))
            var version = page.version
            while watch, !open.isEmpty {
                let changed = try await library.catalog.ask(ListUploadJobs(changedAfter: version)).result
                version = changed.version
                if changed.jobs.isEmpty {
                    // Another client may have acknowledged a job.
                    let rest = try await StorageJobsCommand.readAll(ListUploadJobs(action: .cancel), in: library)
                    open.formIntersection(rest.jobs.map(\.id))
                }
                for job in changed.jobs {
                    if job.state.isFinal { open.remove(job.id) } else { open.insert(job.id) }
                    try output.result(job.json) {
                        let progress = job.progress.map { " \(Int($0 * 100)) %" } ?? ""
                        let problem = job.problem.map { ": \($0)" } ?? ""
                        return ["\(job.id) \(job.kind.rawValue) \(job.state.rawValue)\(progress)\(problem)"]
                    }
                }
            }
        }
    }

    /// `safelight storage jobs upload`
    struct Upload: SelectionCommand {
        static let configuration = CommandConfiguration(abstract: "Upload the originals of assets.")
        @OptionGroup var assets: AssetSelection
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            try await StorageJobsCommand.create(.upload, assets, in: library, output)
        }
    }

    /// `safelight storage jobs download`
    struct Download: SelectionCommand {
        static let configuration = CommandConfiguration(abstract: "Download the originals of assets.")
        @OptionGroup var assets: AssetSelection
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            try await StorageJobsCommand.create(.downloadOnly, assets, in: library, output)
        }
    }

    /// `safelight storage jobs acknowledge`
    struct Acknowledge: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "Remove jobs that have ended.")
        @OptionGroup var jobs: JobSelection
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            try await jobs.update(.acknowledge, "acknowledged", in: library, output)
        }
    }

    /// `safelight storage jobs retry`
    struct Retry: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "Try failed jobs again; each once.")
        @OptionGroup var jobs: JobSelection
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            try await jobs.update(.retry, "tried again", in: library, output)
        }
    }

    /// `safelight storage jobs cancel`
    struct Cancel: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "Cancel jobs that have not ended.")
        @OptionGroup var jobs: JobSelection
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            try await jobs.update(.cancel, "cancelled", in: library, output)
        }
    }

    private static func create(
        _ kind: UploadJob.Kind,
        _ assets: AssetSelection,
        in library: PhotoLibrary,
        _ output: Output
    ) async throws {
        let request = CreateUploadJobs(assets: try await assets.read(in: library), kind: kind)
        try report(try await library.catalog.ask(request).result, output)
    }

    /// Reads all pages of a list and returns them as one.
    fileprivate static func readAll(_ list: ListUploadJobs, in library: PhotoLibrary) async throws -> UploadJobPage {
        var request = list
        var page = try await library.catalog.ask(request).result
        while let next = page.next {
            request.after = next
            let more = try await library.catalog.ask(request).result
            page.jobs += more.jobs
            page.next = more.next
        }
        return page
    }

    fileprivate static func report(_ page: UploadJobPage, _ output: Output) throws {
        try output.result(page.json) {
            guard !page.jobs.isEmpty else { return [] }
            var table = TextTable([
                .init(title: "job", alignment: .right), .init(title: "type"), .init(title: "state"),
                .init(title: "done", alignment: .right), .init(title: "asset"), .init(title: "problem", width: 60),
            ])
            for job in page.jobs {
                let problem = job.problem.map { "\($0): \(job.message ?? "")" } ?? ""
                let done = job.progress.map { "\(Int($0 * 100)) %" } ?? ""
                table.add(["\(job.id)", job.kind.rawValue, job.state.rawValue, done, job.asset.text, problem])
            }
            return table.lines
        }
    }
}

/// Jobs as arguments.
struct JobSelection: ParsableArguments {
    @Argument(help: "Numbers of jobs, as `safelight storage jobs` lists them.") var numbers: [Int64] = []
    @Flag(help: "All jobs for which it is possible.") var all = false

    func validate() throws {
        guard numbers.isEmpty == all else { throw ValidationError("give numbers of jobs, or --all") }
    }

    fileprivate func update(
        _ action: UploadJob.Action,
        _ result: String,
        in library: PhotoLibrary,
        _ output: Output
    ) async throws {
        var ids = numbers
        if all {
            let page = try await StorageJobsCommand.readAll(ListUploadJobs(action: action), in: library)
            ids = page.jobs.map(\.id)
        }
        var page = UploadJobPage()
        for start in stride(from: 0, to: ids.count, by: UploadJob.limit) {
            let part = Array(ids[start...].prefix(UploadJob.limit))
            let updated: UploadJobPage
            do {
                updated = try await library.catalog.ask(UpdateUploadJobs(jobs: part, action: action)).result
            } catch {
                throw CommandFailure(error, after: start, of: ids.count, "job")
            }
            (page.capacity, page.version) = (updated.capacity, updated.version)
            page.jobs += updated.jobs
        }
        try output.result(page.json) { ["\(QuantityFormatter.count(Set(ids).count, "job")) \(result)"] }
    }
}

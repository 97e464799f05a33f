import Basics
import Contracts
import Hosting
import Logging
import ObjectStorage
import PhotoModel
import ServiceLifecycle
import Storage
import Synchronization

/// Uploads new bytes to the object store, removes local files beyond the budget, and deletes unreferenced objects. One
/// task does all three, so that none of them acts on files or objects that another is about to change.
///
/// Of several catalogs, the one that writes does this. A standby removes its own local files, which it has downloaded,
/// and uploads those that were imported through it before another catalog took over. The writer then finds them in the
/// object store and records that.
final class UploadService: Service, Sendable {
    private let remote: RemoteStorage
    private let downloads: ResourceDownloads
    private let tail: ChangeLogTail
    private let clock: MonotonicClock
    private let collector: RemoteCollector
    private let evictor: LocalFileEvictor
    private let logger: Logger

    /// The maximum number of uploads between two commits of their outcomes.
    private static let batch = 32
    /// The bytes after which outcomes are committed too, so that large files do not delay the removal of local files.
    private static let batchBytes: Int64 = 256 << 20
    /// The number of attempts after which an upload has failed.
    private static let attempts = 5
    /// The maximum time between two rounds, in seconds.
    private static let maxDelay = 60.0
    /// The time between two rounds of a standby, in seconds, and between two requests to the object store for a file of
    /// another catalog.
    private static let standbyDelay = 5.0

    init(
        _ remote: RemoteStorage,
        downloads: ResourceDownloads,
        tail: ChangeLogTail,
        clock: MonotonicClock,
        collectAfter: Int64
    ) {
        self.remote = remote
        self.downloads = downloads
        self.tail = tail
        self.clock = clock
        logger = remote.logger
        collector = RemoteCollector(remote, clock: clock, after: collectAfter)
        evictor = LocalFileEvictor(remote, clock: clock)
    }

    func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                group.addTask { await self.followChanges() }
                group.addTask { await self.work() }
            }
        }
    }

    /// Begins the uploads of this catalog, when it starts or takes over.
    private func begin() async throws {
        let location = remote.options.location.text
        try await remote.store.changeUploadStates { try $0.begin(location) }
        do {
            try await remote.store.changeUploadJobs { try $0.registerInterrupted() }
        } catch StorageError.notEnoughSpace {
            // The round frees disk space before it begins a download.
        }
    }

    /// Begins a round after each change of the library.
    private func followChanges() async {
        var head = tail.head
        while !Task.isCancelled, await tail.wait(for: head + 1, isClient: false) {
            // An import begins one round, not one for each of its files.
            await TaskDelay.debounce(.milliseconds(100))
            head = tail.head
            remote.wake()
        }
    }

    private func work() async {
        remote.wake()
        var failures = 0
        var hasBegun = false
        var uploaded: Set<ResourceDigest> = []
        for await _ in remote.rounds {
            if Task.isCancelled { return }
            do {
                // An object store that did not answer is asked again, even if there is no work for it.
                if remote.problem != nil { _ = try await remote.client.head("availability") }
                guard remote.store.election?.refusal == nil else {
                    hasBegun = false
                    downloads.endOldLeases()
                    try await evictor.run()
                    try await uploadUnrecorded(&uploaded)
                    failures = 0
                    remote.note(nil)
                    scheduleRound(after: Self.standbyDelay)
                    continue
                }
                if !hasBegun {
                    try await begin()
                    // As a standby it has counted failures that are not in the database.
                    delayed.withLock { $0 = [:] }
                }
                (hasBegun, uploaded) = (true, [])
                remote.throttle.setWorking(true)
                defer { remote.throttle.setWorking(false) }
                let start = clock.nowMicroseconds()
                // An object store that only serves reads still serves the download jobs.
                var refusal: (any Error)?
                do { try await uploadAll() } catch { refusal = error }
                if Task.isCancelled { return }
                try await performDownloadJobs()
                if let refusal { throw refusal }
                downloads.endOldLeases()
                try await evictor.run()
                try await collector.run()
                failures = 0
                remote.note(nil)
                let next = delayed.withLock { delayed in
                    // A file that was due and was not tried in this round is no longer registered.
                    delayed = delayed.filter { $0.value.next > start }
                    return delayed.values.map { $0.next }.min()
                }
                let wait = next.map { max(0.1, Double($0 - clock.nowMicroseconds()) / 1_000_000) } ?? .infinity
                scheduleRound(after: min(wait, evictor.secondsUntilPass ?? .infinity, collector.secondsUntilRound))
            } catch {
                if Task.isCancelled { return }
                failures += 1
                note(error)
                scheduleRound(after: min(Self.maxDelay, 0.5 * Double(1 << min(8, failures))))
            }
        }
    }

    private func note(_ error: any Error) {
        if let error = error as? ObjectStoreError {
            remote.note(error)
        } else {
            logger.warning("uploading failed; trying again", metadata: ["error": "\(error)"])
        }
    }

    /// Begins a round after a time, instead of the one that was scheduled before.
    private func scheduleRound(after seconds: Double) {
        let remote = remote
        let task = Task {
            await TaskDelay.retryDelay(.seconds(seconds * Double.random(in: 0.75...1)))
            if !Task.isCancelled { remote.wake() }
        }
        timer.withLock { old in
            old?.cancel()
            old = task
        }
    }

    private let timer = Mutex<Task<Void, Never>?>(nil)

    // MARK: Uploads

    private func uploadAll() async throws {
        var last: ResourceDigest?
        while !Task.isCancelled {
            let page = try await remote.store.read { [last] reader in
                try reader.uploadStates.registered(after: last, limit: Self.batch)
            }
            guard let end = page.last else { return }
            // Local files are removed even if the queue is long, or if the disk is full so that no upload is recorded.
            try await evictor.run()
            let due = page.filter { !isDelayed($0) }
            last = due.isEmpty ? end : try await upload(due)
        }
    }

    /// Uploads the files of a standby that the object store does not have yet.
    ///
    /// - Parameter uploaded: the files that the object store has
    private func uploadUnrecorded(_ uploaded: inout Set<ResourceDigest>) async throws {
        var last: ResourceDigest?
        while !Task.isCancelled {
            let page = try await remote.store.read { [last] reader in
                try reader.uploadStates.registered(after: last, limit: Self.batch)
            }
            guard let end = page.last else { return }
            for digest in page
            where !uploaded.contains(digest) && !isDelayed(digest) && remote.resources.contains(digest) {
                defer { remote.jobChanges.end([digest]) }
                switch await upload(digest, replaces: false) {
                case .confirmed: uploaded.insert(digest)
                case .failed: delay(digest)
                case .stopped(let error): throw error
                case .elsewhere: break
                }
            }
            last = end
        }
    }

    /// The files whose uploads have failed, and those that neither this machine nor the object store has, with the time
    /// of the next attempt.
    private let delayed = Mutex<[ResourceDigest: (failures: Int, next: Int64)]>([:])

    private func isDelayed(_ digest: ResourceDigest) -> Bool {
        let now = clock.nowMicroseconds()
        return delayed.withLock { delayed in delayed[digest].map { $0.next > now } ?? false }
    }

    /// Delays the next attempt after a failed upload, each time about twice as long, up to a minute.
    private func delay(_ digest: ResourceDigest) {
        let now = clock.nowMicroseconds()
        delayed.withLock { delayed in
            let failures = (delayed[digest]?.failures ?? 0) + 1
            let next = now + Int64.random(in: 250_000...500_000) << min(failures, 7)
            delayed[digest] = (failures: failures, next: next)
        }
    }

    private enum Outcome: Sendable {
        case confirmed(ResourceDigest, size: Int64)
        case failed(ResourceDigest, ObjectStoreError)
        /// The file is on the machine of another catalog, which uploads it when it runs.
        case elsewhere
        /// The object store as a whole failed.
        case stopped(any Error)
    }

    /// Uploads several files at the same time and records their outcomes in one transaction.
    ///
    /// - Returns: the last file whose upload was tried; the rest is left for the next call
    private func upload(_ digests: [ResourceDigest]) async throws -> ResourceDigest? {
        var stop: (any Error)?
        var outcomes: [Outcome] = []
        let repeated: Set<ResourceDigest>
        do {
            try await beginJobs(digests)
            repeated = try await remote.store.read { try $0.uploadStates.repeated(digests) }
        } catch {
            remote.jobChanges.end(digests)
            throw error
        }
        let start = clock.nowMicroseconds()
        var rest = digests[...]
        var bytes: Int64 = 0
        await withTaskGroup(of: Outcome.self) { group in
            for digest in rest.prefix(remote.options.uploads) {
                group.addTask { await self.upload(digest, replaces: repeated.contains(digest)) }
            }
            rest = rest.dropFirst(remote.options.uploads)
            for await outcome in group {
                if case .stopped(let error) = outcome { stop = error } else { outcomes.append(outcome) }
                if case .confirmed(let digest, let size) = outcome {
                    bytes += size
                    delayed.withLock { $0[digest] = nil }
                }
                if case .failed(let digest, _) = outcome { delay(digest) }
                guard stop == nil, bytes < Self.batchBytes, let next = rest.popFirst() else { continue }
                group.addTask { await self.upload(next, replaces: repeated.contains(next)) }
            }
        }
        remote.jobChanges.end(digests)
        remote.noteUploaded(bytes, microseconds: clock.nowMicroseconds() - start)
        let date = remote.now()
        try await remote.store.changeUploadStates { [outcomes] objects in
            for outcome in outcomes {
                switch outcome {
                case .confirmed(let digest, let size): try objects.confirm(digest, size: size, date: date)
                case .failed(let digest, let error):
                    try objects.fail(
                        digest,
                        problem: error.problem.rawValue,
                        message: error.message,
                        date: date,
                        maxAttempts: Self.attempts
                    )
                case .elsewhere, .stopped: break
                }
            }
            // Jobs whose uploads have neither succeeded nor failed wait again.
            try objects.jobs.setUploading(false, digests, date: date)
        }
        remote.jobChanges.noteChange()
        if let stop { throw stop }
        return digests[..<rest.startIndex].last
    }

    /// Records that uploads are running: new jobs for them begin as pending.
    private func beginJobs(_ digests: [ResourceDigest]) async throws {
        remote.jobChanges.begin(digests)
        guard try await remote.store.read({ try $0.uploadJobs.hasOpenUploads(for: digests) }) else { return }
        let date = remote.now()
        try await remote.store.changeUploadJobs { try $0.setUploading(true, digests, date: date) }
        remote.jobChanges.noteChange()
    }

    /// - Parameter replaces: true to send the bytes even if the object store has them
    private func upload(_ digest: ResourceDigest, replaces: Bool) async -> Outcome {
        let (remote, key) = (remote, RemoteStorage.key(digest))
        do {
            let file: ResourceFile
            do {
                file = try await remote.blockingIO.run { try remote.resources.open(digest) }
            } catch StorageError.notFound {
                return try await confirm(digest)
            }
            defer { withExtendedLifetime(file) {} }
            let (changes, size) = (remote.jobChanges, file.size)
            try await remote.client.upload(
                key,
                from: file.descriptor,
                size: size,
                digest: digest.text,
                replaces: replaces,
                sent: { changes.advance(digest, to: Double($0) / Double(max(1, size))) }
            )
            return .confirmed(digest, size: file.size)
        } catch let error as ObjectStoreError where error.problem.concernsObject && error.problem != .cancelled {
            return logFailure(digest, error)
        } catch let error as ObjectStoreError where error.problem == .unexpectedReply {
            // An object store that accepts other objects refuses this one, for example because it is too large.
            guard (try? await remote.client.checkWriting()) != nil else { return .stopped(error) }
            return logFailure(digest, error)
        } catch let error as StorageError where error.isAbsence {
            return .stopped(error)
        } catch let error as StorageError {
            return .failed(digest, ObjectStoreError(.fileDamaged, error.message))
        } catch {
            return .stopped(error)
        }
    }

    private func logFailure(_ digest: ResourceDigest, _ error: ObjectStoreError) -> Outcome {
        logger.warning(
            "a file could not be uploaded",
            metadata: ["digest": "\(digest)", "problem": "\(error.problem.rawValue)", "message": "\(error.message)"]
        )
        return .failed(digest, error)
    }

    /// Confirms bytes that are not on this machine: the object store has them, or they are lost.
    private func confirm(_ digest: ResourceDigest) async throws -> Outcome {
        let key = RemoteStorage.key(digest)
        guard let info = try await remote.client.head(key) else {
            if remote.store.election != nil {
                let next = clock.nowMicroseconds() + Int64(Self.standbyDelay * 1_000_000)
                delayed.withLock { $0[digest] = (failures: 0, next: next) }
                return .elsewhere
            }
            return .failed(digest, ObjectStoreError(.noObject, "the file is neither on this machine nor at the store"))
        }
        guard try await remote.client.confirm(key, info, digest: digest.text) else {
            return .failed(digest, ObjectStoreError(.objectDamaged, "the object store has other bytes"))
        }
        return .confirmed(digest, size: info.size)
    }

    // MARK: Downloads that clients have registered

    /// Performs the download jobs.
    ///
    /// - Throws: the failure of the object store as a whole; the job is then registered again
    private func performDownloadJobs() async throws {
        let remote = remote
        while !Task.isCancelled {
            // Before each job, so that many downloads do not fill the disk. On a full disk no job can be changed.
            downloads.endOldLeases()
            try await evictor.run()
            let date = remote.now()
            let next = try await remote.store.changeUploadJobs { jobs in
                // No transfer is running: if one is recorded as running, its end could not be recorded.
                try jobs.registerInterrupted()
                return try jobs.nextDownload(date: date)
            }
            guard let job = next else { return }
            remote.jobChanges.noteChange()
            defer { if let digest = ResourceDigest(job.digest) { remote.jobChanges.end([digest]) } }
            do {
                let failure = try await tryDownload(job)
                // If the commit fails, the job is run again, and may find the file on this machine.
                let state = failure == nil ? UploadJob.State.succeeded : .failed
                try await end(job, state, problem: failure?.problem, message: failure?.message)
            } catch {
                try await remote.store.changeUploadJobs { try $0.registerInterrupted() }
                remote.jobChanges.noteChange()
                throw error
            }
            // New files are uploaded between two downloads.
            guard try await remote.store.read({ try $0.uploadStates.registered(after: nil, limit: 1).isEmpty }) else {
                return remote.wake()
            }
        }
    }

    /// Downloads the file of a job.
    ///
    /// - Returns: the reason why the job has failed; nil if the file is on this machine
    /// - Throws: the failure of the object store as a whole
    private func tryDownload(_ job: UploadJob) async throws -> (problem: String, message: String)? {
        do {
            try await download(job)
            return nil
        } catch let error as ObjectStoreError where error.problem.concernsObject && error.problem != .cancelled {
            return (error.problem.rawValue, error.message)
        } catch let error as ObjectStoreError where error.problem == .unexpectedReply {
            // An object store that answers other requests does not serve this object, for example because the download
            // had to continue with a range of it.
            guard (try? await remote.client.checkBucket()) != nil else { throw error }
            return (error.problem.rawValue, error.message)
        } catch StorageError.notEnoughSpace {
            // Other downloads may be smaller. The message of the error has paths of this machine.
            return ("not_enough_space", "the disk of the library is full; free some space and retry the job")
        }
    }

    private func download(_ job: UploadJob) async throws {
        guard let digest = ResourceDigest(job.digest), !remote.resources.contains(digest) else { return }
        guard let size = try await downloads.remoteSize(of: digest) else {
            throw ObjectStoreError(.noObject, "the file is neither on this machine nor at the store")
        }
        do {
            let changes = remote.jobChanges
            _ = try await downloads.download(digest, size: size, for: .service) { changes.advance(digest, to: $0) }
        } catch ResourceError.notDownloaded(_, let error) {
            throw error
        }
    }

    private func end(
        _ job: UploadJob,
        _ state: UploadJob.State,
        problem: String? = nil,
        message: String? = nil
    ) async throws {
        let date = remote.now()
        try await remote.store.changeUploadJobs {
            try $0.end(job.id, state, problem: problem, message: message, date: date)
        }
        remote.jobChanges.noteChange()
    }
}

import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Reads lines, publishes the edits in them and follows each edit.
///
/// The output applies back pressure: the next line is read after the previous one was reported, and the next state of
/// an edit is received after the previous one was written.
struct PublishRun: Sendable {
    let name: String
    /// True if each edit is applied after the previous edit of the same asset.
    let isChained: Bool
    /// True if all edits may download originals.
    let mayDownload: Bool
    let reader: InputLineReader
    let publisher: EditPublisher
    let reporter: PublishReporterActor

    /// The time limit of the last status request after a stop.
    private static let stateTimeout = Duration.seconds(3)

    /// Runs until every edit has reached the goal, or until a stop is requested.
    ///
    /// - Returns: true if it was stopped
    func run(_ lines: AsyncThrowingStream<[UInt8], any Error>, stop: StopRequest) async throws -> Bool {
        let isStopped = try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                await stop.wait()
                return true
            }
            group.addTask {
                do {
                    try await run(lines)
                } catch  where Task.isCancelled {
                    return true
                }
                return false
            }
            // The task that ends first cancels the other one; the group waits for both.
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
        guard isStopped else { return false }
        await publisher.requestStates(deadline: Self.stateTimeout)
        try await receiveUpdates()
        return true
    }

    /// Runs until every edit has reached the goal. A read error of the input is thrown after the edits that were
    /// published before it are finished.
    private func run(_ lines: AsyncThrowingStream<[UInt8], any Error>) async throws {
        let failure = try await withThrowingTaskGroup(of: (any Error)?.self) { group in
            group.addTask {
                try await publisher.run()
                return nil
            }
            group.addTask {
                try await receiveUpdates()
                return nil
            }
            group.addTask {
                do {
                    try await publish(lines)
                } catch  where !Task.isCancelled {
                    await publisher.finish()
                    return error
                }
                await publisher.finish()
                return nil
            }
            var failure: (any Error)?
            // The first error that is thrown cancels the other tasks.
            while let ended = try await group.next() { failure = ended ?? failure }
            return failure
        }
        if let failure { throw failure }
    }

    private func receiveUpdates() async throws {
        for await status in publisher.updates { try await reporter.record(status) }
    }

    private func publish(_ lines: AsyncThrowingStream<[UInt8], any Error>) async throws {
        var last: [ObjectID: String] = [:]
        var number = 0
        for try await bytes in lines {
            number += 1
            switch read(bytes, number, last) {
            case .success(nil): break
            case .success(var line?):
                if mayDownload { line.edit.isNetworkAccessAllowed = true }
                last[line.edit.asset] = line.edit.id
                await reporter.recordPublished(line)
                if let failure = try await publishEdit(line) { try await reporter.record(failure) }
            case .failure(let failure): try await reporter.record(failure)
            }
            reader.finishLine()
        }
        try Task.checkCancellation()
    }

    private func read(
        _ bytes: [UInt8],
        _ number: Int,
        _ last: [ObjectID: String]
    ) -> Result<PublishedLine?, CommandFailure> {
        do {
            return .success(
                try PublishedLine(bytes, number: number, name: name, previous: { isChained ? last[$0] : nil })
            )
        } catch {
            return .failure(error)
        }
    }

    /// Publishes the edit of a line. Returns the failure if its id was used before with another edit.
    private func publishEdit(_ line: PublishedLine) async throws -> CommandFailure? {
        do {
            try await publisher.publish(line.edit)
            return nil
        } catch {
            guard error.errorCode == .idReused else { throw error }
            return CommandFailure(
                message: "line \(line.number): \(error.message)",
                name: error.name,
                data: ["line": JSON(line.number)]
            )
        }
    }
}

/// Serializes access to the report; a call returns when its output has been written.
actor PublishReporterActor {
    private var report: PublishReporter

    init(_ report: PublishReporter) { self.report = report }

    var isComplete: Bool { report.isComplete }
    var published: Int { report.published }
    var reached: Int { report.reached }

    func recordPublished(_ line: PublishedLine) { report.recordPublished(line) }
    func record(_ failure: CommandFailure) throws { try report.record(failure) }
    func record(_ status: EditStatus) throws { try report.record(status) }
    func finish(isStopped: Bool) throws { try report.finish(isStopped: isStopped) }
}

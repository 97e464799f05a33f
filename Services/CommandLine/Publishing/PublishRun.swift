import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// Reads lines, publishes the edits in them and follows each.
///
/// Nothing is ahead of who tells: lines wait for their telling, and edits for the news of others to be told.
struct PublishRun: Sendable {
    let name: String
    /// Each edit comes after the one before it of the same asset.
    let isChained: Bool
    let reader: LineReader
    let publisher: EditPublisher
    let teller: PublishTeller

    /// How long somebody who wants to stop waits for a last answer.
    private static let patience = Duration.seconds(3)

    /// Works until every edit has come as far as is waited for, or somebody wants to stop.
    ///
    /// - Returns: whether it was stopped
    func work(_ lines: AsyncThrowingStream<[UInt8], any Error>, stop: StopRequest) async throws -> Bool {
        let isStopped = try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                await stop.wait()
                return true
            }
            group.addTask {
                do {
                    try await work(lines)
                } catch  where Task.isCancelled {
                    return true
                }
                return false
            }
            // Whichever is first ends the other, and is waited for.
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
        guard isStopped else { return false }
        await publisher.ask(deadline: Self.patience)
        try await hear()
        return true
    }

    private func work(_ lines: AsyncThrowingStream<[UInt8], any Error>) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await publisher.run() }
            group.addTask { try await hear() }
            group.addTask {
                try await publish(lines)
                await publisher.finish()
            }
            try await group.waitForAll()
        }
    }

    private func hear() async throws {
        for await status in publisher.news { try await teller.take(status) }
    }

    private func publish(_ lines: AsyncThrowingStream<[UInt8], any Error>) async throws {
        var last: [ObjectID: String] = [:]
        var number = 0
        for try await bytes in lines {
            number += 1
            switch read(bytes, number, last) {
            case .success(nil): break
            case .success(let line?):
                last[line.edit.asset] = line.edit.id
                await teller.publish(line)
                if let failure = try await hand(line) { try await teller.take(failure) }
            case .failure(let failure): try await teller.take(failure)
            }
            reader.done()
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

    /// What is wrong with the line, where its id stands twice.
    private func hand(_ line: PublishedLine) async throws -> CommandFailure? {
        do {
            try await publisher.publish(line.edit)
            return nil
        } catch {
            guard error.refusal == .idReused else { throw error }
            return CommandFailure(
                message: "line \(line.number): \(error.message)",
                name: error.name,
                data: ["line": JSON(line.number)]
            )
        }
    }
}

/// The one place where it is told what becomes of edits: who tells waits until it is written.
actor PublishTeller {
    private var report: PublishReport

    init(_ report: PublishReport) { self.report = report }

    var isComplete: Bool { report.isComplete }

    func publish(_ line: PublishedLine) { report.publish(line) }
    func take(_ failure: CommandFailure) throws { try report.take(failure) }
    func take(_ status: EditStatus) throws { try report.take(status) }
    func finish(isStopped: Bool) throws { try report.finish(isStopped: isStopped) }
}

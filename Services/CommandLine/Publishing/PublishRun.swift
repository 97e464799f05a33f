import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// What happens while edits are published.
enum PublishEvent: Sendable {
    case published(PublishedLine)
    case broken(CommandFailure)
    case news(EditStatus)
}

/// Reads lines, publishes the edits in them and follows each.
struct PublishRun: Sendable {
    let name: String
    /// Each edit comes after the one before it of the same asset.
    let isChained: Bool
    let reader: LineReader
    let publisher: EditPublisher
    let teller: AsyncStream<PublishEvent>.Continuation

    /// Works until every edit has come as far as is waited for.
    func work(_ lines: AsyncThrowingStream<[UInt8], any Error>) async throws {
        async let running: Void = publisher.run()
        async let hearing: Void = hear()
        try await publish(lines)
        await publisher.finish()
        try await running
        await hearing
    }

    private func hear() async {
        for await status in publisher.news { teller.yield(.news(status)) }
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
                teller.yield(.published(line))
                if let failure = try await hand(line) { teller.yield(.broken(failure)) }
            case .failure(let failure): teller.yield(.broken(failure))
            }
            reader.done()
        }
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

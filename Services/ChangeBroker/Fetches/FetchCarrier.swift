import Basics
import Contracts
import JSONValue
import PhotoModel

/// Carries the observed results over the records that the feed has published: a cursor in the history like any other
/// reader, so that records wait in the history and nowhere else, and `changes` never waits for it.
struct FetchCarrier: Sendable {
    let history: ChangeHistory
    let configuration: ChangeBrokerConfiguration
    private let decoder = RecordDecoder("carrier")

    init(history: ChangeHistory, configuration: ChangeBrokerConfiguration) {
        self.history = history
        self.configuration = configuration
    }

    private var feed: RecordFeed { history.feed }

    /// Records that are read at a time, and their bytes; a larger one comes alone.
    private static let pageRecords = 100
    private static let pageBytes = 1 << 20

    /// Runs until cancelled.
    func run() async {
        for await _ in feed.recordSignal {
            while !Task.isCancelled, let token = await feed.firstUncarried() { await carry(after: token) }
        }
    }

    private func carry(after token: ChangeToken) async {
        do throws(RPCError) {
            let page = try await history.page(
                after: token,
                limit: Self.pageRecords,
                filter: .everything,
                maxBytes: Self.pageBytes,
                deadline: .seconds(20)
            )
            guard !page.records.isEmpty else { return await TaskDelay.retryDelay(configuration.catalogPause) }
            for bytes in page.records {
                let change: ChangeRecord
                do throws(JSONProblem) {
                    change = try await decoder.decode(bytes) { $0 }.get()
                } catch {
                    // A record of a newer catalog: no result can be carried over it.
                    return await feed.giveUpFetches("a record cannot be read: \(error)", after: token)
                }
                guard await feed.carryFetches(over: change, bytes) else { return }
            }
        } catch  where error.errorCode == .tokenExpired {
            await feed.giveUpFetches(error.message, after: token)
        } catch {
            await TaskDelay.retryDelay(configuration.catalogPause)
        }
    }
}

import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Updates the observed results with the records that the feed has published. It reads the history with a cursor, like
/// any other reader, so that no records are queued for it, and the topic `changes` never waits for it.
struct ObservedFetchUpdater: Sendable {
    let history: ChangeHistory
    let configuration: ChangeBrokerConfiguration
    private let decoder = RecordDecoder("updater")

    init(history: ChangeHistory, configuration: ChangeBrokerConfiguration) {
        self.history = history
        self.configuration = configuration
    }

    private var feed: RecordFeed { history.feed }
    private var loader: KeyLoader { KeyLoader(history: history, configuration: configuration) }

    /// The maximum number of records that are read at a time.
    private static let pageRecords = 100
    /// The maximum size of these records in bytes; a larger record is read alone.
    private static let pageBytes = 1 << 20
    /// The time after which no further result is read again for a record, because later records wait. The observations
    /// of the other results are then ended, and their clients observe them again.
    private static let reloadTime = Duration.seconds(5)

    /// Runs until cancelled.
    func run() async {
        for await _ in feed.recordSignal {
            while !Task.isCancelled, let token = await feed.nextUpdateToken() { await update(after: token) }
        }
    }

    /// Updates the results with one record, and reads those again that the record does not determine.
    ///
    /// - Returns: false if the record is no longer the next one
    private func update(with change: ChangeRecord, _ bytes: Bytes) async throws(RPCError) -> Bool {
        var reloaded: [Int: LoadedKeys] = [:]
        while true {
            switch await feed.updateFetches(with: change, bytes, reloaded, on: decoder) {
            case .done: return true
            case .stopped: return false
            case .reload(let missing):
                let end = ContinuousClock.now + Self.reloadTime
                var late: [Int] = []
                for (number, fetch) in missing {
                    guard ContinuousClock.now < end else {
                        late.append(number)
                        continue
                    }
                    do throws(RPCError) {
                        reloaded[number] = try await loader.keys(
                            of: fetch,
                            (configuration.maxFetchRows, configuration.maxFetchBytes),
                            at: change.token,
                            since: ChangeToken(library: change.library, sequence: change.sequence - 1)
                        )
                    } catch {
                        if error.isTransient { throw error }
                        await feed.endFetches(ofResults: [number], error.message)
                    }
                }
                await feed.endFetches(ofResults: late, "reading them again takes too long")
            }
        }
    }

    private func update(after token: ChangeToken) async {
        do throws(RPCError) {
            let page = try await history.page(
                after: token,
                limit: Self.pageRecords,
                filter: .everything,
                maxBytes: Self.pageBytes,
                deadline: .seconds(20)
            )
            guard !page.records.isEmpty else { return await TaskDelay.retryDelay(configuration.catalogRetryDelay) }
            for bytes in page.records {
                let change: ChangeRecord
                do throws(JSONProblem) {
                    change = try await decoder.decode(bytes) { $0 }.get()
                } catch {
                    // A record of a newer catalog: no result can be updated with it.
                    return await feed.endFetches("a record cannot be read: \(error)", after: token)
                }
                guard try await update(with: change, bytes) else { return }
            }
        } catch  where error.errorCode == .tokenExpired {
            await feed.endFetches(error.message, after: token)
        } catch {
            await TaskDelay.retryDelay(configuration.catalogRetryDelay)
        }
    }
}

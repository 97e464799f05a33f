import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Updates the observed results with the records that the feed has published. It is a cursor in the history like any
/// other reader, so that records wait only in the history, and the topic `changes` never waits for it.
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

    /// The number of records that are read at a time, and their bytes; a larger record is read alone.
    private static let pageRecords = 100
    private static let pageBytes = 1 << 20
    /// The time after which no further result is read again for a record. Other records wait, so the observations of
    /// the remaining results are ended; their clients observe them again in turn.
    private static let reloadTime = Duration.seconds(5)

    /// Runs until cancelled.
    func run() async {
        for await _ in feed.recordSignal {
            while !Task.isCancelled, let token = await feed.updateStart() { await update(after: token) }
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
                        await feed.giveUpFetches(ofResults: [number], error.message)
                    }
                }
                await feed.giveUpFetches(ofResults: late, "reading them again takes too long")
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
            guard !page.records.isEmpty else { return await TaskDelay.retryDelay(configuration.catalogPause) }
            for bytes in page.records {
                let change: ChangeRecord
                do throws(JSONProblem) {
                    change = try await decoder.decode(bytes) { $0 }.get()
                } catch {
                    // A record of a newer catalog: no result can be updated with it.
                    return await feed.giveUpFetches("a record cannot be read: \(error)", after: token)
                }
                guard try await update(with: change, bytes) else { return }
            }
        } catch  where error.errorCode == .tokenExpired {
            await feed.giveUpFetches(error.message, after: token)
        } catch {
            await TaskDelay.retryDelay(configuration.catalogPause)
        }
    }
}

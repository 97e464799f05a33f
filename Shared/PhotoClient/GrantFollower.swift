import Basics
import Contracts
public import Logging
public import PhotoModel
import JSONValue
import Synchronization

/// Follows the changes of grants, for services that cache the permissions of identities.
public struct GrantFollower: Sendable {
    private let feed: ChangeFeed
    private let logger: Logger
    /// A feed of one topic confirms its position at least every five seconds while the library changes.
    private static let staleAfter = Duration.seconds(12)

    /// - Parameter feed: the change feed of the topic `grants`
    public init(feed: ChangeFeed, logger: Logger) {
        self.feed = feed
        self.logger = logger
    }

    /// Follows until cancelled; subscribes again after a second if the feed ends.
    ///
    /// - Parameters:
    ///   - changed: called when the transaction of the token has changed a grant
    ///   - confirmed: called at least every few seconds while every change up to now has arrived
    ///   - lost: called when changes may have been missed, or may arrive late
    public func run(
        changed: @escaping @Sendable (Grant, ChangeToken) async -> Void,
        confirmed: @escaping @Sendable () -> Void,
        lost: @escaping @Sendable () -> Void
    ) async {
        let lastConfirmed = ConfirmationTime()
        let feed = feed.confirming { _ in
            lastConfirmed.set()
            confirmed()
        }
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for await _ in TaskDelay.ticks(every: .seconds(1)) where lastConfirmed.isOlder(than: Self.staleAfter) {
                    lost()
                }
            }
            while !Task.isCancelled {
                do throws(RPCError) {
                    for try await event in feed {
                        switch event {
                        case .change(let record):
                            for change in record.grants {
                                if let grant = change.after { await changed(grant, record.token) }
                            }
                        case .expired: lost()
                        case .caughtUp: break
                        }
                    }
                } catch {
                    logger.warning(
                        "the feed of grants failed; subscribing again",
                        metadata: ["error": "\(error.message)"]
                    )
                }
                lost()
                await TaskDelay.retryDelay(.seconds(1))
            }
            group.cancelAll()
        }
    }
}

/// The time of the last confirmation; nil before the first.
private final class ConfirmationTime: Sendable {
    private let time = Mutex<ContinuousClock.Instant?>(nil)

    func set() { time.withLock { $0 = .now } }

    func isOlder(than duration: Duration) -> Bool {
        time.withLock { time in time.map { .now - $0 > duration } ?? true }
    }
}

import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import PhotoModel

/// The end of edits in the catalog.
extension PublishedEditProcessor {
    /// Returns the outcome of an edit; nil if it is not known to have ended.
    func ending(of key: EditKey) async -> PublishedEditState? {
        do throws(RPCError) {
            let state = try await catalog.state(of: key)
            return state == .accepted ? nil : state ?? .failed
        } catch {
            return nil
        }
    }

    /// Records in the catalog that an edit has failed.
    ///
    /// An accepted edit belongs to this editor until it has ended in the catalog, so no other process would record its
    /// failure. Repeats until the failure is recorded, or until the catalog responds that the edit has ended or is
    /// unknown.
    ///
    /// - Parameter isAccepted: true if the catalog has accepted it
    /// - Returns: the outcome; nil if the editor stops, or if the failure of an edit that is not accepted could not be
    ///   recorded
    func end(_ queued: QueuedEdit, _ failure: RPCError, isAccepted: Bool = true) async -> PublishedEditState? {
        var tries = EditRetryPolicy()
        while !Task.isCancelled {
            do throws(RPCError) {
                try await catalog.fail(queued, isAccepted: isAccepted, failure)
                metrics.failed.add()
                throttledLog.warning("a published edit failed", queued.metadata(failure))
                return .failed
            } catch {
                if error.errorCode == .conflict { return .applied }
                switch tries.next(after: error, isConditional: true) {
                case .again(let delay): await TaskDelay.retryDelay(delay)
                case .fails where isAccepted:
                    // The response may have been lost, not the record.
                    if let ended = await ending(of: queued.key) { return ended }
                    throttledLog.warning(
                        "the failure of an edit was not recorded; trying again",
                        queued.metadata(error)
                    )
                    await TaskDelay.retryDelay(EditRetryPolicy.maxDelay)
                case .fails:
                    // It fails again when its publisher sends it again. Until then the edits after it wait.
                    metrics.setAside.add()
                    throttledLog.warning("the failure of an edit was not recorded", queued.metadata(error))
                    return nil
                }
            }
        }
        return nil
    }
}

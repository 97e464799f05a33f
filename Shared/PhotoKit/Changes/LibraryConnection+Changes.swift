import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

extension LibraryConnection {
    /// The time for which changes wait for the owner's consent.
    private static let consentTime = Duration.seconds(600)

    /// Performs the requests of a block as one transaction, exactly once (S-71 to S-73).
    func perform(_ changes: [any RecordedChange]) async throws(RPCError) {
        let transaction = PhotoLibrary.uniqueTransaction()
        for attempt in 1... {
            var files = try ChangeFiles(self, for: changes)
            do throws(RPCError) {
                return try await perform(changes, transaction, &files)
            } catch {
                await client.cancelUploads(files.uploads)
                // The catalog was restarted after an upload and has discarded it; the changes were not committed.
                let isLost = error.errorCode == .handleExpired && !files.uploads.isEmpty
                guard isLost, attempt < PhotoLibrary.uploadAttempts else { throw error }
            }
        }
    }

    private func perform(
        _ changes: [any RecordedChange],
        _ transaction: String,
        _ files: inout ChangeFiles
    ) async throws(RPCError) {
        var requests: [ChangeRequest] = []
        for change in changes { requests += try await change.wireRequests(&files) }
        guard !requests.isEmpty else { return }
        // A request that adds assets to an album may precede the requests that create them in the same block.
        requests = requests.filter(\.isCreation) + requests.filter { !$0.isCreation }
        let request = PerformChanges(
            requests: requests,
            client: configuration.client,
            transaction: transaction
        )
        // The owner may take longer to consent than the deadline of a request. A request with the same transaction then
        // waits for the same consent.
        let end = ContinuousClock.now + Self.consentTime
        while true {
            do throws(RPCError) {
                _ = try await ask(request, of: client.catalog, attachments: files.attachments)
                break
            } catch {
                guard error.data["isWaiting"] == true, ContinuousClock.now < end, !Task.isCancelled,
                    !isClosed.load(ordering: .relaxed)
                else { throw error }
            }
        }
        files.removeMoved()
    }
}

extension ChangeRequest {
    fileprivate var isCreation: Bool {
        switch self {
        case .createAsset, .createCollection, .createList: true
        default: false
        }
    }
}

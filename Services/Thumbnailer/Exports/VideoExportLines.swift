/// The exports of each client. One export of a client runs at a time, so that a client with many delays another client
/// by one file at most.
struct VideoExportLines: Sendable {
    /// For each client with a running export, those that wait behind it, in order.
    private var waiting: [String: [String]] = [:]

    /// Adds an export.
    ///
    /// - Returns: true if it runs now, because no other export of the client does
    mutating func append(_ name: String, of client: String) -> Bool {
        guard waiting[client] != nil else {
            waiting[client] = []
            return true
        }
        waiting[client]?.append(name)
        return false
    }

    /// Removes an export that waits; does nothing if it runs.
    mutating func remove(_ name: String, of client: String) { waiting[client]?.removeAll { $0 == name } }

    /// Ends the running export of a client.
    ///
    /// - Returns: the export that runs now; nil if none waits
    mutating func next(of client: String) -> String? {
        guard waiting[client]?.isEmpty == false else {
            waiting[client] = nil
            return nil
        }
        return waiting[client]?.removeFirst()
    }
}

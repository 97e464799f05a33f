/// The exports of each client, of which one at a time is under way, so that a client with many delays those of another
/// one by one file.
struct VideoExportLines: Sendable {
    /// For each client with an export under way, those behind it in order.
    private var waiting: [String: [String]] = [:]

    /// Adds an export.
    ///
    /// - Returns: true if it is under way from now on, because no other one of the client is
    mutating func append(_ name: String, of client: String) -> Bool {
        guard waiting[client] != nil else {
            waiting[client] = []
            return true
        }
        waiting[client]?.append(name)
        return false
    }

    /// Removes an export that waits; does nothing if it is under way.
    mutating func remove(_ name: String, of client: String) { waiting[client]?.removeAll { $0 == name } }

    /// Ends the export of a client that is under way.
    ///
    /// - Returns: the one that is under way from now on; nil if none waits
    mutating func next(of client: String) -> String? {
        guard waiting[client]?.isEmpty == false else {
            waiting[client] = nil
            return nil
        }
        return waiting[client]?.removeFirst()
    }
}

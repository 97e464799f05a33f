/// The waiting exports of each client. One export of a client runs at a time, so that a client with many exports delays
/// another client by at most one file.
struct PerClientQueue: Sendable {
    /// For each client with a running export, the exports that wait for it to end, in order.
    private var waiting: [String: [String]] = [:]

    /// Adds an export.
    ///
    /// - Returns: true if it may run now, because no other export of the client runs
    mutating func append(_ name: String, of client: String) -> Bool {
        guard waiting[client] != nil else {
            waiting[client] = []
            return true
        }
        waiting[client]?.append(name)
        return false
    }

    /// Removes a waiting export. Does nothing if it is running.
    mutating func remove(_ name: String, of client: String) { waiting[client]?.removeAll { $0 == name } }

    /// Records that the running export of a client has ended.
    ///
    /// - Returns: the export that runs next; nil if none waits
    mutating func next(of client: String) -> String? {
        guard waiting[client]?.isEmpty == false else {
            waiting[client] = nil
            return nil
        }
        return waiting[client]?.removeFirst()
    }
}

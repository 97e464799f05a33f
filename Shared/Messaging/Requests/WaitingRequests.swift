import Basics
import DequeModule
import JSONValue

/// Requests of one connection that wait until others have ended, in the order of their arrival.
struct WaitingRequests {
    /// A decoded request, without the bytes of its JSON frame.
    struct Entry {
        var request: Envelope.Request
        /// The attachments and the reserved memory.
        let message: IncomingMessage
        /// The frames that precede every response to it.
        let prefix: [Bytes]
        /// The deadline that the request names, counted from its arrival; `.max` if it names none.
        let deadline: Int64
    }

    private var entries: [JSON: Entry] = [:]
    /// May name requests that were removed meanwhile.
    private var order: Deque<JSON> = []

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// The number of places in use; those of removed requests are free again when their turn has come, or when none
    /// waits.
    var placeCount: Int { order.count }

    subscript(id: JSON) -> Entry? { entries[id] }

    mutating func append(_ entry: Entry) {
        entries[entry.request.id] = entry
        order.append(entry.request.id)
    }

    mutating func popFirst() -> Entry? {
        defer { freePlacesIfEmpty() }
        while let id = order.popFirst() {
            if let entry = entries.removeValue(forKey: id) { return entry }
        }
        return nil
    }

    mutating func remove(_ id: JSON) -> Entry? {
        defer { freePlacesIfEmpty() }
        return entries.removeValue(forKey: id)
    }

    /// A connection without waiting requests has no turn at which the places of removed ones could be freed.
    private mutating func freePlacesIfEmpty() { if entries.isEmpty { order = [] } }

    /// Adds credit to a waiting request; false if it was not opened with credit.
    mutating func addCredit(_ bytes: Int, to id: JSON, limit: Int) -> Bool {
        guard let credit = entries[id]?.request.credit else { return false }
        entries[id]?.request.credit = min(limit, credit.addingClamped(bytes))
        return true
    }

    /// Removes and returns the requests for which there is an error, in no particular order. Each is asked about once,
    /// because the answer may change meanwhile.
    mutating func removeAll(with error: (Entry) -> RPCError?) -> [(entry: Entry, error: RPCError)] {
        var ending: [(entry: Entry, error: RPCError)] = []
        for entry in entries.values {
            if let error = error(entry) { ending.append((entry, error)) }
        }
        for (entry, _) in ending { entries[entry.request.id] = nil }
        freePlacesIfEmpty()
        return ending
    }

    /// The earliest deadline that a request names; `.max` if none does.
    var earliestDeadline: Int64 { entries.values.reduce(.max) { min($0, $1.deadline) } }
}

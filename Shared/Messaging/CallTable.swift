import DequeModule

/// The calls of one client between sending and answer: values only, no sockets.
struct CallTable {
    /// Waiting to be sent, in order; calls that were taken back meanwhile are skipped.
    private var waiting: Deque<OutgoingCall> = []
    private var known: [Int64: OutgoingCall] = [:]
    private var sent: Set<Int64> = []
    /// Taken back, their answer still to come; they count as under way for the service.
    private var abandoned: Set<Int64> = []
    let window: Int

    init(window: Int) { self.window = window }

    var open: Int { known.count }

    mutating func add(_ call: OutgoingCall) {
        known[call.id] = call
        waiting.append(call)
    }

    func isOpen(_ call: OutgoingCall) -> Bool { known[call.id] != nil }
    func isSent(_ call: OutgoingCall) -> Bool { sent.contains(call.id) }

    /// The next call that may be sent now.
    mutating func nextToSend() -> OutgoingCall? {
        guard sent.count + abandoned.count < window else { return nil }
        while let first = waiting.first {
            if known[first.id] != nil { return first }
            waiting.removeFirst()
        }
        return nil
    }

    mutating func markSent(_ call: OutgoingCall) {
        if waiting.first === call { waiting.removeFirst() }
        sent.insert(call.id)
    }

    /// - Returns: whether the service knows of it, so that it must be told.
    mutating func takeBack(_ call: OutgoingCall) -> Bool {
        guard known.removeValue(forKey: call.id) != nil else { return false }
        guard sent.remove(call.id) != nil else { return false }
        abandoned.insert(call.id)
        return true
    }

    /// The call that a response ends.
    mutating func answered(_ id: Int64) -> OutgoingCall? {
        if abandoned.remove(id) != nil { return nil }
        guard sent.remove(id) != nil else { return nil }
        return known.removeValue(forKey: id)
    }

    /// The call that a notification is about.
    func about(_ id: Int64) -> OutgoingCall? { sent.contains(id) ? known[id] : nil }

    /// The connection is gone, and with it every answer.
    mutating func connectionLost() -> [OutgoingCall] {
        let lost = sent.compactMap { known.removeValue(forKey: $0) }
        sent = []
        abandoned = []
        return lost
    }

    mutating func removeAll() -> [OutgoingCall] {
        let all = Array(known.values)
        self = CallTable(window: window)
        return all
    }

    /// The calls whose time is up, and the moment of the next.
    func expired(_ now: Int64) -> (calls: [OutgoingCall], next: Int64) {
        var calls: [OutgoingCall] = []
        var next = Int64.max
        for call in known.values {
            if call.deadline <= now { calls.append(call) } else { next = min(next, call.deadline) }
        }
        return (calls, next)
    }
}

/// A bounded queue of jobs that wait for a worker, ordered by priority, then by arrival. It uses no clock or thread.
struct WorkerQueue<Ticket> {
    private var lines: [[(id: UInt64, ticket: Ticket)]]
    private var starts: [Int]
    let limit: Int
    private(set) var count = 0

    init(limit: Int) {
        self.limit = limit
        self.lines = WorkerPriority.allCases.map { _ in [] }
        self.starts = lines.map { _ in 0 }
    }

    /// Appends a job to those of its priority; returns false if the queue is full.
    mutating func append(_ ticket: Ticket, id: UInt64, priority: WorkerPriority) -> Bool {
        guard count < limit else { return false }
        lines[priority.rawValue].append((id, ticket))
        count += 1
        return true
    }

    /// Puts a dequeued job back in front of those of its priority, regardless of the limit.
    mutating func requeue(_ ticket: Ticket, id: UInt64, priority: WorkerPriority) {
        let line = priority.rawValue
        lines[line].insert((id, ticket), at: starts[line])
        count += 1
    }

    /// Removes and returns the next job; nil if the queue is empty.
    mutating func next() -> Ticket? {
        for line in lines.indices where starts[line] < lines[line].count {
            let ticket = lines[line][starts[line]].ticket
            starts[line] += 1
            count -= 1
            // Dequeued entries are removed in batches, so that the cost does not depend on the length of the queue.
            if starts[line] == lines[line].count || starts[line] >= 64 {
                lines[line].removeFirst(starts[line])
                starts[line] = 0
            }
            return ticket
        }
        return nil
    }

    /// Removes and returns a job; nil if it is no longer waiting.
    mutating func remove(_ id: UInt64) -> Ticket? {
        for line in lines.indices {
            guard let position = lines[line][starts[line]...].firstIndex(where: { $0.id == id }) else { continue }
            count -= 1
            return lines[line].remove(at: position).ticket
        }
        return nil
    }

    /// Removes and returns all jobs.
    mutating func removeAll() -> [Ticket] {
        var all: [Ticket] = []
        while let ticket = next() { all.append(ticket) }
        return all
    }
}

import DequeModule

/// A bounded queue of jobs that wait for a worker, ordered by priority, then by arrival. It uses no clock or thread.
///
/// Jobs are not shared or grouped here: the thumbnailer groups requests for one file before
/// (`CoalescingPriorityQueue`), because only it knows which jobs are equal. A job returns to the
/// front when its worker ended before the job began, which queued requests never do; hence two queues.
struct WorkerQueue<Ticket> {
    private var lines: [Deque<(id: UInt64, ticket: Ticket)>] = WorkerPriority.allCases.map { _ in [] }
    let limit: Int
    private(set) var count = 0

    init(limit: Int) { self.limit = limit }

    /// Appends a job to those of its priority; returns false if the queue is full.
    mutating func append(_ ticket: Ticket, id: UInt64, priority: WorkerPriority) -> Bool {
        guard count < limit else { return false }
        lines[priority.rawValue].append((id, ticket))
        count += 1
        return true
    }

    /// Puts a dequeued job back in front of those of its priority, regardless of the limit.
    mutating func requeue(_ ticket: Ticket, id: UInt64, priority: WorkerPriority) {
        lines[priority.rawValue].prepend((id, ticket))
        count += 1
    }

    /// Removes and returns the next job; nil if the queue is empty.
    mutating func next() -> Ticket? {
        guard let line = lines.firstIndex(where: { !$0.isEmpty }) else { return nil }
        count -= 1
        return lines[line].removeFirst().ticket
    }

    /// Removes and returns a job; nil if it is no longer waiting.
    mutating func remove(_ id: UInt64) -> Ticket? {
        for line in lines.indices {
            guard let position = lines[line].firstIndex(where: { $0.id == id }) else { continue }
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

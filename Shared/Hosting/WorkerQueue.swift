/// The jobs that wait for a worker: bounded, by priority, then by arrival; pure, without clock or thread.
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

    /// Puts a job at the end of its line; `false` where the queue is full.
    mutating func append(_ ticket: Ticket, id: UInt64, priority: WorkerPriority) -> Bool {
        guard count < limit else { return false }
        lines[priority.rawValue].append((id, ticket))
        count += 1
        return true
    }

    /// Puts a job that was taken back at the front of its line, whatever the limit.
    mutating func putBack(_ ticket: Ticket, id: UInt64, priority: WorkerPriority) {
        let line = priority.rawValue
        lines[line].insert((id, ticket), at: starts[line])
        count += 1
    }

    /// Takes the job that is due.
    mutating func next() -> Ticket? {
        for line in lines.indices where starts[line] < lines[line].count {
            let ticket = lines[line][starts[line]].ticket
            starts[line] += 1
            count -= 1
            // Taken entries are dropped in batches, so that taking costs the same however long the line is.
            if starts[line] == lines[line].count || starts[line] >= 64 {
                lines[line].removeFirst(starts[line])
                starts[line] = 0
            }
            return ticket
        }
        return nil
    }

    /// Takes out one job, if it still waits.
    mutating func remove(_ id: UInt64) -> Ticket? {
        for line in lines.indices {
            guard let position = lines[line][starts[line]...].firstIndex(where: { $0.id == id }) else { continue }
            count -= 1
            return lines[line].remove(at: position).ticket
        }
        return nil
    }

    /// Takes out all jobs.
    mutating func removeAll() -> [Ticket] {
        var all: [Ticket] = []
        while let ticket = next() { all.append(ticket) }
        return all
    }
}

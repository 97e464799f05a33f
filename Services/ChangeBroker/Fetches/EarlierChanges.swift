import PhotoModel

/// The net changes of a result between a client's token and the beginning of the result's log.
struct EarlierChanges: Sendable {
    /// The changes up to it are included.
    private(set) var token: ChangeToken
    private(set) var changes = NetChanges()
    /// The encoded bytes of the records read.
    private(set) var bytes = 0
    /// The time that the evaluation of the records has taken.
    private(set) var evaluationTime = Duration.zero

    init(after token: ChangeToken) { self.token = token }

    /// Adds the changes of the next record.
    mutating func add(_ found: [NetChange], at sequence: Int64, _ size: Int, took time: Duration = .zero) {
        changes.add(found)
        bytes += size
        evaluationTime += time
        advance(to: sequence)
    }

    /// Records that there are no further changes up to a sequence.
    mutating func advance(to sequence: Int64) {
        token = ChangeToken(library: token.library, sequence: max(token.sequence, sequence))
    }
}

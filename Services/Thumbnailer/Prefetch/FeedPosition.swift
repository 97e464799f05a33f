import PhotoModel

/// The token up to which all changes of a feed have been processed, if several changes are processed at the same time.
struct FeedPosition: Sendable {
    private var received: ChangeToken?
    private var processing: [Int64: Int] = [:]

    /// The token from which a restart continues; nil before the first event.
    var token: ChangeToken? {
        guard let received, let first = processing.keys.min() else { return received }
        return ChangeToken(library: received.library, sequence: first - 1)
    }

    /// The number of parts of changes that are being processed.
    var count: Int { processing.values.reduce(0, +) }

    /// Records that an event was received, and that all work for it has begun.
    mutating func receive(_ token: ChangeToken) { received = token }

    /// Records that a part of a change is being processed.
    mutating func begin(_ sequence: Int64) { processing[sequence, default: 0] += 1 }

    /// Records that a part of a change was processed.
    mutating func end(_ sequence: Int64) {
        guard let count = processing[sequence] else { return }
        processing[sequence] = count > 1 ? count - 1 : nil
    }
}

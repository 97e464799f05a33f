/// The bytes of memory that clients have reserved, with a limit for all of them, of which one identity may use half.
struct BytesByIdentity {
    /// The bytes of all identities.
    private(set) var total = 0
    private var byIdentity: [String: Int] = [:]

    /// Adds bytes of an identity, if they are within the limits.
    ///
    /// - Returns: true if they were added
    mutating func add(_ bytes: Int, of identity: String, limit: Int) -> Bool {
        let sum = (byIdentity[identity] ?? 0) + bytes
        guard total + bytes <= limit, sum <= limit / 2 else { return false }
        total += bytes
        byIdentity[identity] = sum
        return true
    }

    /// Removes bytes that were added.
    mutating func remove(_ bytes: Int, of identity: String) {
        total -= bytes
        let remaining = (byIdentity[identity] ?? 0) - bytes
        byIdentity[identity] = remaining > 0 ? remaining : nil
    }
}

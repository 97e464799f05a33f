import PhotoClient

/// The transactions of one run of a command. Their ids share a prefix and are kept in the history, so that
/// `safelight undo` finds all changes of the run.
struct CommandTransactions {
    private let first = PhotoLibrary.uniqueTransaction()
    private var count = 0

    /// The prefixLength of the common prefix: 32 hexadecimal digits.
    private static let prefixLength = 32

    /// Returns the id of the next transaction.
    mutating func next() -> String {
        count += 1
        return count == 1 ? first : "\(first)-\(count)"
    }

    /// Returns the common prefix of the ids of a run; nil for an id of another form.
    ///
    /// The editor adds the identifier of the asset to the id of a request with several assets.
    static func run(of transaction: String?) -> String? {
        guard let transaction else { return nil }
        let run = transaction.prefix(prefixLength)
        guard run.utf8.count == prefixLength, run.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
        let rest = transaction.dropFirst(prefixLength)
        return rest.isEmpty || rest.hasPrefix("-") || rest.hasPrefix(".") ? String(run) : nil
    }

    /// Returns the start of a run in microseconds since 1970, with which its ids begin.
    static func startTime(of run: String) -> Int64? { Int64(run.prefix(12), radix: 16).map { $0 * 1000 } }

    /// True if the id is that of the first transaction of a run, before which there is none.
    static func isFirst(_ transaction: String?) -> Bool { transaction?.utf8.count == prefixLength }
}

import PhotoClient

/// The transactions of one run of a command. Their ids begin alike and are kept in the history, so that
/// `safelight undo` finds all changes of the run.
struct CommandTransactions {
    private let first = PhotoLibrary.uniqueTransaction()
    private var count = 0

    /// The length of the beginning that the ids have in common: 32 hexadecimal digits.
    private static let length = 32

    /// Returns the id of the next transaction.
    mutating func next() -> String {
        count += 1
        return count == 1 ? first : "\(first)-\(count)"
    }

    /// Returns the beginning that the ids of a run have in common; nil for an id of another form.
    ///
    /// The editor adds the identifier of the asset to the id of a request with several assets.
    static func run(of transaction: String?) -> String? {
        guard let transaction else { return nil }
        let run = transaction.prefix(length)
        guard run.utf8.count == length, run.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
        let rest = transaction.dropFirst(length)
        return rest.isEmpty || rest.hasPrefix("-") || rest.hasPrefix(".") ? String(run) : nil
    }

    /// Returns the time at which a run began, in microseconds since 1970: its ids begin with it.
    static func begin(of run: String) -> Int64? { Int64(run.prefix(12), radix: 16).map { $0 * 1000 } }

    /// True if the id is that of the first transaction of a run, before which there is none.
    static func isFirst(_ transaction: String?) -> Bool { transaction?.utf8.count == length }
}

/// The presence of the store at the path where it was opened.
extension ResourceStore {
    /// Returns the reason why the folder of the store is no longer at its path: ``StorageError/offline(_:)`` or
    /// ``StorageError/relinquished(_:)``; nil if it is.
    public func absence() -> StorageError? { presence.absence() }

    /// The folders in which every stored file is made.
    public var foldersToWrite: [String] { [root, incoming] }

    /// Writes a temporary file of 1 MiB and removes it, to find out whether files can be stored.
    ///
    /// - Throws: ``StorageError`` if not.
    public func probe() throws(StorageError) {
        let writer = try writer(limit: Int64(Self.stepBytes))
        defer { writer.cancel() }
        try writer.append([UInt8](repeating: 0, count: Self.stepBytes))
    }
}

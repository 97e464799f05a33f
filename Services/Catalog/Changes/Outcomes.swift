import Contracts
import JSONValue
import PhotoModel

extension ChangeTransaction {
    /// Returns the reply to a transaction that was performed.
    func result(token: ChangeToken, isChanged: Bool) -> JSON {
        var ids = JSONObject()
        for (ref, id) in placeholders { ids[ref] = .string(id.text) }
        return PerformChanges.Result(
            token: token,
            isChanged: isChanged,
            placeholders: ids,
            duplicates: duplicates
        ).json
    }
}

extension StoredOutcome {
    /// Returns the same reply again.
    ///
    /// - Throws: `id_reused` if the request has other parameters
    func result(for digest: [UInt8], _ key: OutcomeKey) throws -> JSON {
        guard digest == self.digest else {
            throw ErrorCode.idReused.error(
                "the transaction id \"\(key.transaction)\" was used for other requests; use a new id for each "
                    + "transaction",
                ["transaction": .string(key.transaction)]
            )
        }
        return try JSON(parsing: reply)
    }
}

extension BatchStore {
    func tooLarge(_ bytes: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "the change record would have \(bytes) bytes, the limit is \(rules.maxRecordBytes); split the transaction",
            ["limit": JSON(rules.maxRecordBytes)]
        )
    }
}

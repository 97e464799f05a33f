import Contracts
import JSONValue
import Messaging
import PhotoModel

extension ChangeTransaction {
    /// The reply to a transaction that was carried out.
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
    /// The same answer again, or `id_reused` where something else is asked for under the name.
    func result(for digest: [UInt8], _ key: OutcomeKey) throws -> JSON {
        guard digest == self.digest else {
            throw Refusal.idReused.error(
                "the transaction id \"\(key.transaction)\" was used for other requests; take a new id for each "
                    + "transaction",
                ["transaction": .string(key.transaction)]
            )
        }
        return try JSON(parsing: reply)
    }
}

extension BatchStore {
    func tooLarge(_ bytes: Int) -> RPCError {
        Refusal.limitExceeded.error(
            "the change record would have \(bytes) bytes, the limit is \(rules.maxRecordBytes); split the transaction",
            ["limit": JSON(rules.maxRecordBytes)]
        )
    }
}

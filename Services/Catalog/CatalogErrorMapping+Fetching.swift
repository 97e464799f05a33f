import Contracts
import JSONValue
import PhotoModel

extension CatalogErrorMapping {
    /// Returns the error on the wire for a refused fetch.
    static func rpcError(_ error: FetchError) -> RPCError {
        switch error {
        case .wrongKind(let accepted):
            ErrorCode.invalidOptions.error("the fetch must be of the \(accepted)", ["parameter": "fetch"])
        case .indexOutOfRange(let index, let count):
            ErrorCode.rangeError.error(
                "index \(index) is beyond the end: the result has \(count) objects",
                ["index": JSON(index), "count": JSON(count)]
            )
        case .pageTooLarge(let limit):
            ErrorCode.limitExceeded.error(
                "the objects of the page have more than \(limit) bytes; request fewer objects at once, or less of each "
                    + "with members",
                ["limit": JSON(limit)]
            )
        case .badPosition(let text):
            ErrorCode.invalidParams.error("after: \"\(text)\" is not the next of a page", ["parameter": "after"])
        case .notFollowable:
            ErrorCode.notObservable.error(
                "change records do not contain changes of transient collections; compare two results by "
                    + "details.diff"
            )
        case .localFiles: ErrorCode.notObservable.error(Fetch.localFilesReason)
        case .rangeReversed: ErrorCode.invalidOptions.error("from is later than to; exchange them")
        case .differentClasses(let before, let after):
            ErrorCode.invalidOptions.error(
                "from is a result of \(before.rawValue), to of \(after.rawValue); give two results of one class"
            )
        case .foreignSnapshot(let id):
            ErrorCode.invalidOptions.error("snapshotFetch must be a fetch of the members of \(id)")
        case .snapshotTooLarge(let id, let count, let limit):
            ErrorCode.limitExceeded.error(
                "\(id) has \(count) members; index operations are limited to \(limit), name members by their "
                    + "identifiers",
                ["limit": JSON(limit)]
            )
        case .snapshotsTooLarge(let limit, let steps):
            ErrorCode.limitExceeded.error(
                "index operations of one transaction are limited to lists with \(limit) members together, and to "
                    + "\(steps) members counted for each operation; split the transaction, or name members by their "
                    + "identifiers",
                ["limit": JSON(limit)]
            )
        case .tooManySnapshots(let limit):
            ErrorCode.busy.error(
                "the lists of waiting index operations have \(limit) members; try again later",
                ["limit": JSON(limit)]
            )
        case .keysWithoutNotifications:
            ErrorCode.invalidOptions.error("fetch.keys needs a DEALER socket; on a REQ socket request pages")
        case .noKeys: ErrorCode.notObservable.error("fetch.keys does not support this fetch; request pages")
        case .scopeTooLarge(let limit):
            ErrorCode.limitExceeded.error(
                "more than \(limit) albums and folders are below the folder; observe a smaller one",
                ["limit": JSON(limit)]
            )
        case .tooManyKeys(let limit, let maxBytes):
            ErrorCode.limitExceeded.error(
                "the result has more than \(limit) keys, or their bytes more than \(maxBytes); "
                    + "narrow the fetch, or read pages with fetch.assets and members [\"id\"]",
                ["limit": JSON(limit)]
            )
        case .tooManyKeyBytes(let limit):
            ErrorCode.limitExceeded.error(
                "the keys of the result have more than \(limit) bytes; "
                    + "narrow the fetch, or read pages with fetch.assets and members [\"id\"]",
                ["limit": JSON(limit)]
            )
        case .tooManyWaitingKeys(let limit):
            ErrorCode.busy.error(
                "keys of at most \(limit) bytes wait for the credit of clients, half of them for one client; "
                    + "read the keys of other requests first, or try again later",
                ["limit": JSON(limit)]
            )
        case .tooManyAssets(let list, let limit):
            ErrorCode.limitExceeded.error(
                "the collections of \(list) have more than \(limit) assets; fetch in each of them",
                ["limit": JSON(limit)]
            )
        case .tooManyTransients(let limit, let members):
            ErrorCode.limitExceeded.error(
                "an identity may have \(limit) transient collections with \(members) members in all; release some",
                ["limit": JSON(limit)]
            )
        case .transientsFull(let members):
            ErrorCode.busy.error(
                "the transient collections of all clients together have at most \(members) members, and others use "
                    + "them; try again later",
                ["limit": JSON(members)]
            )
        case .resultTooLarge(let count, let limit):
            ErrorCode.limitExceeded.error(
                "the result has \(count) members, a transient collection at most \(limit)",
                ["limit": JSON(limit)]
            )
        case .expired(let id):
            ErrorCode.handleExpired.error(
                "\(id) has expired; create it again with transient.create",
                ["id": .string(id.text)]
            )
        case .idsAndResults: ErrorCode.invalidOptions.error("a transient collection has either ids or results")
        case .mixedMembers:
            ErrorCode.invalidOptions.error("a collection holds assets, a list holds collections and lists")
        }
    }
}

import Contracts
import JSONValue
import PhotoModel

extension CatalogErrorMapping {
    /// Returns the error on the wire for a refused change.
    static func rpcError(_ error: ChangeError) -> RPCError {
        switch error {
        case .recallWithoutTransaction:
            ErrorCode.invalidOptions.error(
                "recall needs the id of the transaction that it returns",
                ["parameter": "transaction"]
            )
        case .tooManyObjects(let limit):
            ErrorCode.limitExceeded.error(
                "the transaction touches more than \(limit) assets and collections; split it",
                ["limit": JSON(limit)]
            )
        case .tooManyNames(let limit):
            ErrorCode.limitExceeded.error(
                "the requests of the transaction name more than \(limit) objects; split it",
                ["limit": JSON(limit)]
            )
        case .noMetadata: ErrorCode.internalError.error("the bytes have no metadata")
        case .unknownReference(let ref):
            ErrorCode.invalidParams.error(
                "no earlier request of this transaction has the ref \"\(ref)\"",
                ["ref": .string(ref)]
            )
        case .duplicateReference(let ref):
            ErrorCode.invalidParams.error(
                "the ref \"\(ref)\" is used twice",
                ["parameter": "ref", "ref": .string(ref)]
            )
        case .unstorableText(let name):
            ErrorCode.invalidParams.error(
                "\(name) must not contain the character U+0000",
                ["parameter": .string(name)]
            )
        case .textTooLong(let name, let bytes, let limit):
            ErrorCode.invalidParams.error(
                "\(name) has \(bytes) bytes as stored, in Unicode normal form C, and at most \(limit) are allowed;"
                    + " shorten it",
                ["parameter": .string(name), "limit": JSON(limit)]
            )
        case .followWithoutNotifications:
            ErrorCode.invalidOptions.error("changes.follow needs a DEALER socket; a REQ socket polls changes.since")
        case .wrongKind(let id, let expected):
            ErrorCode.invalidParams.error("\(id) is not \(noun(expected))")
        case .identifierRefused(let id):
            ErrorCode.conflict.error(
                "no new object can have the identifier \(id): an object has it, or it was not generated today",
                ["id": .string(id.text)]
            )
        case .transient(let id):
            ErrorCode.changeNotSupported.error(
                "\(id) is transient and cannot be changed; create another one, or an album with its members",
                ["id": .string(id.text)]
            )
        case .changed(let id, let current, let expected):
            ErrorCode.conflict.error(
                "\(id) has changed: it has \(current), not \(expected); fetch it again",
                ["id": .string(id.text), "revision": .string(current.description)]
            )
        case .noOriginalSent: ErrorCode.missingResource.error("an asset needs a resource of type photo")
        case .noOriginal(let id):
            ErrorCode.missingResource.error("\(id) has no original", ["id": .string(id.text)])
        case .notInBurst(let id):
            ErrorCode.requestNotSupported.error("\(id) is not a frame of a burst", ["id": .string(id.text)])
        case .pickOutsideBurst(let id): unsupportedError("isUserPick", of: id, "is not a frame of a burst")
        case .effectWithoutLivePhoto(let id, let effect):
            unsupportedError("playbackVariation", of: id, "is not a Live Photo and has no effect \(effect)")
        case .tooManyKeywords(let limit):
            ErrorCode.limitExceeded.error("an asset has at most \(limit) keywords; remove some first")
        case .synced(let id):
            ErrorCode.changeNotSupported.error(
                "\(id) was synced from another device and cannot be changed here",
                ["id": .string(id.text)]
            )
        case .incompleteEdit: ErrorCode.invalidParams.error("an edit needs both render and adjustmentData")
        case .mediaTypeDiffers(let id, let asset, let render):
            ErrorCode.requestNotSupported.error(
                "\(id) has media type \(asset.rawValue) and its render has \(render.rawValue); send a render of the same"
                    + " type",
                ["id": .string(id.text), "mediaType": .string(asset.rawValue)]
            )
        case .noLivePhoto(let id):
            ErrorCode.requestNotSupported.error(
                "\(id) is not a Live Photo: omit pairedVideo",
                ["id": .string(id.text), "parameter": "pairedVideo"]
            )
        case .pairedVideoIsNoVideo(let id):
            ErrorCode.requestNotSupported.error(
                "the pairedVideo of the edit of \(id) is an image; send its rendered video",
                ["id": .string(id.text), "parameter": "pairedVideo"]
            )
        case .foreignInputToken(let asset, let edit):
            ErrorCode.invalidParams.error(
                "the inputToken is for \(asset), the edit is for \(edit)",
                ["parameter": "inputToken"]
            )
        case .outdatedInputToken(let id, let revision, let contentRevision):
            ErrorCode.conflict.error(
                "\(id) has changed since the edit began: call editing.begin again",
                [
                    "id": .string(id.text), "revision": .string(revision.description),
                    "contentRevision": .string(contentRevision.description),
                ]
            )
        case .noOriginalChoice(let id):
            ErrorCode.requestNotSupported.error(
                "\(id) does not have both a RAW and a compressed original: omit base",
                ["id": .string(id.text)]
            )
        case .editIDReused(let id):
            ErrorCode.idReused.error(
                "the edit \(id) was published with other content; use a new id for each edit",
                ["id": .string(id)]
            )
        case .editTooLarge(let bytes, let limit):
            ErrorCode.limitExceeded.error("an edit has at most \(limit) bytes, this one has \(bytes)")
        case .tooManyEdits(let limit):
            ErrorCode.busy.error("\(limit) edits are accepted and not finished; publish more later")
        case .editNotFound(let id, let asset):
            ErrorCode.identifierNotFound.error("no edit \(id) of \(asset) was accepted", ["edit": .string(id)])
        case .editFinished(let id, let state, let sequence):
            ErrorCode.conflict.error(
                "the edit \(id) is finished: \(state) by #\(sequence)",
                ["edit": .string(id), "state": .string(state), "sequence": .int(sequence)]
            )
        case .noPublisher:
            ErrorCode.accessDenied.error(
                "only services record published edits, onBehalfOf their publisher; push edits.publish to the edits"
                    + " endpoint"
            )
        case .severalPublishedEdits:
            ErrorCode.invalidParams.error("a transaction can contain only one published edit")
        case .derived(let id):
            ErrorCode.changeNotSupported.error(
                "\(id) is derived from its assets and cannot be changed",
                ["id": .string(id.text)]
            )
        case .undeletable(let id):
            ErrorCode.changeNotSupported.error("\(id) cannot be deleted", ["id": .string(id.text)])
        case .derivedInFolder(let id):
            ErrorCode.changeNotSupported.error(
                "\(id) is derived from its assets and cannot be in a folder",
                ["id": .string(id.text)]
            )
        case .keyAssetNotMember(let id):
            ErrorCode.invalidParams.error(
                "the key asset \(id) is not a member of the album",
                ["parameter": "keyAsset", "id": .string(id.text)]
            )
        case .tooManyMembers(let id, let limit):
            ErrorCode.limitExceeded.error(
                "\(id) has more members than one transaction may touch (\(limit)); remove them in steps first",
                ["id": .string(id.text), "limit": JSON(limit)]
            )
        case .cannotJoinAlbums(let id):
            ErrorCode.changeNotSupported.error(
                "\(id) is shared or synced from another device and cannot be added to albums",
                ["id": .string(id.text)]
            )
        case .tooManyAlbums(let id, let limit):
            ErrorCode.limitExceeded.error(
                "\(id) is already in \(limit) albums; remove it from some",
                ["id": .string(id.text), "limit": JSON(limit)]
            )
        case .orderKeyTooLong(let id):
            ErrorCode.limitExceeded.error(
                "too many members were inserted at one position of \(id); move its neighbours to the end and back first",
                ["id": .string(id.text)]
            )
        case .rootHasNoTitle: rootError("the root folder has no name")
        case .rootUndeletable: rootError("the root folder cannot be deleted")
        case .rootUnmovable: rootError("the root folder cannot be moved")
        case .inRoot(let id):
            ErrorCode.changeNotSupported.error(
                "\(id) is already in the root folder; delete it or move it into another folder",
                ["id": .string(id.text)]
            )
        case .tooDeep(let limit):
            ErrorCode.limitExceeded.error("folders can be nested at most \(limit) deep", ["limit": JSON(limit)])
        case .cycle(let child, let parent):
            ErrorCode.cycle.error(
                "\(child) cannot be moved into \(parent), which is the same folder or below it",
                ["id": .string(child.text)]
            )
        case .noSnapshot:
            ErrorCode.snapshotRequired.error(
                "indexes need the state of the list that they refer to: pass it as snapshot, with the token of "
                    + "the result that they were read from"
            )
        case .insertCountDiffers:
            ErrorCode.invalidParams.error("insert needs one index for each member", ["parameter": "at"])
        case .replaceCountDiffers:
            ErrorCode.invalidParams.error("replace needs one member for each index", ["parameter": "members"])
        case .duplicateMember: ErrorCode.invalidParams.error("a member is given twice", ["parameter": "members"])
        case .unorderedIndexes:
            ErrorCode.invalidParams.error(
                "indexes must be in ascending order, without duplicates",
                ["parameter": "at"]
            )
        case .indexOutOfRange(let index, let count):
            ErrorCode.rangeError.error(
                "index \(index) is beyond the end: the list has \(count) members when the index is applied",
                ["index": JSON(index), "count": JSON(count)]
            )
        }
    }

    private static func noun(_ kind: ObjectKind) -> String {
        switch kind {
        case .asset: "an asset"
        case .assetCollection: "a collection"
        case .collectionList: "a folder"
        }
    }

    private static func unsupportedError(_ parameter: String, of id: ObjectID, _ reason: String) -> RPCError {
        ErrorCode.requestNotSupported.error(
            "\(id) \(reason): omit \(parameter)",
            ["id": .string(id.text), "parameter": .string(parameter)]
        )
    }

    private static func rootError(_ message: String) -> RPCError {
        ErrorCode.changeNotSupported.error(message, ["id": .string(ObjectID.root.text)])
    }
}

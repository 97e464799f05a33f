import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

@Suite(.timeLimit(.minutes(1)))
struct CatalogErrorMappingTests {
    private static let head = LibraryHead(library: String(repeating: "a", count: 32), sequence: 7, oldest: 3)
    private static let id: ObjectID = {
        var random = SeededRandom(seed: 1)
        return ObjectID(.asset, milliseconds: 1, using: &random)
    }()

    private static let errors: [(CatalogError, ErrorCode, JSONObject)] = [
        (CatalogError.objectNotFound(id), ErrorCode.identifierNotFound, ["id": .string(id.text)]),
        (.fetchedObjectNotFound, .identifierNotFound, [:]),
        (.transactionNotFound("t"), .identifierNotFound, [:]),
        (.transactionReused("t"), .idReused, ["transaction": "t"]),
        (
            .tokenExpired(head.token, head), .tokenExpired,
            ["oldest": .string(head.oldestToken.description), "head": .string(head.token.description)]
        ),
        (.behind(head: head.token, requested: 9), .behind, ["head": .string(head.token.description)]),
        (.recordTooLarge(bytes: 9, limit: 8), .limitExceeded, ["limit": 8]),
        (.tooManyTransactions(limit: 5), .busy, [:]),
        (.tooManyWaiting(limit: 7, parameter: "after", topic: "jobs"), .limitExceeded, ["limit": 7]),
        (.tooManyWrites(limit: 6), .busy, ["limit": 6]),
    ]

    @Test func `the limits of questions about consent are reported with their own number`() {
        let waiting = CatalogErrorMapping.rpcError(GrantError.tooManyQuestions(of: "key:ann", limit: 32))
        let hourly = CatalogErrorMapping.rpcError(GrantError.tooManyQuestionsPerHour(of: "key:ann", limit: 1000))
        #expect(waiting.errorCode == .limitExceeded && waiting.data["limit"] == 32)
        #expect(hourly.errorCode == .limitExceeded && hourly.data["limit"] == 1000)
        #expect(hourly.message.contains("hour") && !waiting.message.contains("hour"))
    }

    @Test(arguments: errors)
    func `each domain error has its wire error`(error: CatalogError, code: ErrorCode, data: JSONObject) {
        let mapped = CatalogErrorMapping.rpcError(error)
        #expect(mapped.errorCode == code && !mapped.message.isEmpty)
        for (name, value) in data.members { #expect(mapped.data[name] == value, "\(name)") }
        #expect(!CatalogErrorMapping.isFault(error))
    }

    private static let refusals: [(any RefusedRequest, ErrorCode, String, JSONObject)] = [
        (
            ChangeError.wrongKind(id, expected: .collectionList), .invalidParams, "\(id) is not a folder", [:]
        ),
        (
            ChangeError.tooManyKeywords(limit: 1024), .limitExceeded,
            "an asset has at most 1024 keywords; remove some first", [:]
        ),
        (
            ChangeError.textTooLong(parameter: "title", bytes: 1026, limit: 1024), .invalidParams,
            "title has 1026 bytes as stored, in Unicode normal form C, and at most 1024 are allowed; shorten it",
            ["parameter": "title", "limit": 1024]
        ),
        (
            ChangeError.rootUndeletable, .changeNotSupported, "the root folder cannot be deleted",
            ["id": .string(ObjectID.root.text)]
        ),
        (
            ChangeError.pickOutsideBurst(id), .requestNotSupported, "\(id) is not a frame of a burst: omit isUserPick",
            ["id": .string(id.text), "parameter": "isUserPick"]
        ),
        (
            ChangeError.keyAssetNotMember(id), .invalidParams, "the key asset \(id) is not a member of the album",
            ["parameter": "keyAsset", "id": .string(id.text)]
        ),
        (
            ChangeError.unorderedIndexes, .invalidParams, "indexes must be in ascending order, without duplicates",
            ["parameter": "at"]
        ),
        (
            FetchError.wrongKind(accepted: "kind lists"), .invalidOptions,
            "the fetch must be of the kind lists", ["parameter": "fetch"]
        ),
        (
            MaintenanceError.notBelowImportFolder("/a", allowed: ["/b"]), .accessDenied,
            "/a is not below a configured import folder", ["path": "/a", "allowed": ["/b"]]
        ),
        (
            ResourceError.noChunk, .invalidParams, "upload.append needs exactly one attachment, of at most 1 MiB", [:]
        ),
        (
            ResourceError.uploadFinished("u"), .invalidParams, "the upload u is finished", ["parameter": "upload"]
        ),
        (
            ResourceError.notRead(.queueFull(limit: 2), file: "a.jpg"), .busy,
            WorkerFailure.queueFull(limit: 2).message,
            [:]
        ),
        (
            ResourceError.notRead(.unavailable("stopped"), file: "a.xmp", isSidecar: true), .unavailable,
            WorkerFailure.unavailable("stopped").message, ["sidecar": true]
        ),
        (
            ResourceError.exportFailed(.notEnoughSpace("x"), path: "/a"), .notEnoughSpace,
            "the disk of /a is full; free some space and export again", [:]
        ),
    ]

    @Test func `the refusals of each part have their code, message and data`() {
        for (error, code, message, data) in Self.refusals {
            let mapped = CatalogErrorMapping.rpcError(error)
            #expect(mapped == code.error(message, data) && "\(error)" == message)
            #expect(!CatalogErrorMapping.isFault(error))
        }
    }

    @Test func `faults are internal errors, and paths of the disk are not sent`() {
        let damaged = CatalogErrorMapping.rpcError(DamagedRow("row 7 in /library"))
        #expect(damaged.errorCode == .internalError && !damaged.message.contains("/library"))
        let disk = CatalogErrorMapping.rpcError(StorageError.io("/library/library.sqlite cannot be read"))
        #expect(disk.errorCode == .internalError && !disk.message.contains("/library"))
        #expect(CatalogErrorMapping.isFault(DamagedRow("")) && CatalogErrorMapping.isFault(StorageError.io("")))
    }

    @Test func `a token of another history, or outside the sequences of the records, is refused as expired`() throws {
        let head = Self.head
        for sequence in head.oldest...head.sequence {
            try head.check(ChangeToken(library: head.library, sequence: sequence))
        }
        let others = [
            ChangeToken(library: head.library, sequence: 2), ChangeToken(library: head.library, sequence: 8),
            ChangeToken(library: String(repeating: "b", count: 32), sequence: 5),
        ]
        for token in others {
            #expect(throws: CatalogError.tokenExpired(token, head)) { try head.check(token) }
        }
    }
}

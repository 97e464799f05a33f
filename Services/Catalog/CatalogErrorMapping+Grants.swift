import Contracts
import JSONValue

extension CatalogErrorMapping {
    /// Returns the error on the wire for a refused request about access or consent.
    static func rpcError(_ error: GrantError) -> RPCError {
        switch error {
        case .noPurpose:
            ErrorCode.missingPurpose.error(
                "say in \"purpose\" what the access is for; the owner of the library reads it",
                ["parameter": "purpose"]
            )
        case .tooManyRequests(let identity, let limit):
            ErrorCode.limitExceeded.error(
                "too many requests of \(identity) for access wait for the owner; wait for an answer, and ask again in "
                    + "an hour",
                ["limit": JSON(limit)]
            )
        case .tooManyQuestions(let identity, let limit):
            ErrorCode.limitExceeded.error(
                "too many transactions of \(identity) wait for consent; wait for the owner's decisions",
                ["limit": JSON(limit)]
            )
        case .tooManyQuestionsPerHour(let identity, let limit):
            ErrorCode.limitExceeded.error(
                "\(identity) has asked for consent to \(limit) transactions within an hour; try again later, with more "
                    + "changes in one transaction",
                ["limit": JSON(limit)]
            )
        case .questionsFull(let limit):
            ErrorCode.busy.error(
                "\(limit) questions of all clients together wait for the owner's decisions; try again later",
                ["limit": JSON(limit)]
            )
        case .declined(let question):
            ErrorCode.userCancelled.error(
                "the owner of the library declined the transaction; nothing was changed",
                ["question": .string(question)]
            )
        case .undecided(let question, let isWaiting):
            ErrorCode.userCancelled.error(
                "the owner of the library has not decided in time; nothing was changed"
                    + (isWaiting ? "; the question waits on, and the same transaction joins it" : ""),
                ["question": .string(question), "isWaiting": .bool(isWaiting)]
            )
        case .onlyAdds(let identity, let request):
            addOnlyError(identity, "\(request) needs readWrite access")
        case .onlyAddsNoFrames(let identity):
            addOnlyError(identity, "a frame changes the other frames of its burst, which needs readWrite access")
        case .addOnlyCannotDownload(let identity):
            addOnlyError(identity, "a download reads the library, which needs readWrite access", .view)
        case .noSubject: ErrorCode.invalidOptions.error("name an identity, or a question about consent")
        case .noQuestion(let id):
            ErrorCode.identifierNotFound.error(
                "no question \(id) waits for a decision; `safelight grants pending` shows those that do",
                ["question": .string(id)]
            )
        case .questionWithOptions:
            ErrorCode.invalidOptions.error("a question about consent is approved without options")
        case .notInLimitedView(let identity, let what):
            ErrorCode.accessDenied.error(
                "\(identity) sees the assets of its list only; \(what) needs access to the whole library",
                ["identity": .string(identity)]
            )
        case .viewChanged(let identity):
            ErrorCode.accessDenied.error(
                "the owner of the library has changed what \(identity) may see; call session.open, and fetch again",
                ["identity": .string(identity)]
            )
        case .tooManyAssets(let limit):
            ErrorCode.limitExceeded.error(
                "the list would have more than \(limit) assets; give access to the whole library, or narrow the list",
                ["limit": JSON(limit)]
            )
        case .noAccess(let identity):
            ErrorCode.identifierNotFound.error(
                "\(identity) has no access that could be taken away; `safelight grants list` shows who has",
                ["identity": .string(identity)]
            )
        case .notLimited(let identity):
            ErrorCode.identifierNotFound.error(
                "\(identity) has no list of assets that could be changed; give it one with `safelight grants limit`",
                ["identity": .string(identity)]
            )
        case .decidedByConnection(let identity):
            ErrorCode.invalidOptions.error(
                "the access of \(identity) follows from its connection; grants are for keys and other users",
                ["identity": .string(identity)]
            )
        case .noIdentity(let text):
            ErrorCode.invalidOptions.error(
                "\(text.prefix(80)) is not an identity: use key:NAME, or uid:N with the uid of a user of this machine",
                ["identity": .string(text)]
            )
        case .noKey(let identity):
            ErrorCode.identifierNotFound.error(
                "no listed key has the name \(identity.dropFirst(4)); `safelight keys list` shows them",
                ["identity": .string(identity)]
            )
        case .tooManyGrants(let limit):
            ErrorCode.limitExceeded.error("there are \(limit) grants already", ["limit": JSON(limit)])
        }
    }

    private static func addOnlyError(
        _ identity: String,
        _ reason: String,
        _ access: MethodAccess = .change
    ) -> RPCError {
        ErrorCode.accessDenied.error(
            "\(identity) may only add assets; \(reason)",
            ["identity": .string(identity), "access": .string(access.rawValue)]
        )
    }
}

/// The reason why a request about access, or about consent, is refused.
enum GrantError: RefusedRequest, Equatable {
    // MARK: Requests of clients

    /// `session.open` came without a purpose.
    case noPurpose
    /// Too many requests for access wait for the owner, or were recorded within an hour.
    case tooManyRequests(of: String, limit: Int)
    /// Too many transactions wait for consent.
    case tooManyQuestions(of: String, limit: Int)
    /// The owner was asked about too many transactions within an hour.
    case tooManyQuestionsPerHour(of: String, limit: Int)
    /// Too many requests for access, or transactions, of all identities together wait for the owner.
    case questionsFull(limit: Int)
    /// The owner declined the transaction.
    case declined(question: String)
    /// The owner has not decided in time.
    ///
    /// - Parameter isWaiting: true if the same transaction can still join the question
    case undecided(question: String, isWaiting: Bool)

    // MARK: Access to add

    /// A client that may only add sent another request.
    case onlyAdds(String, request: String)
    /// A client that may only add sent a frame of a burst, which changes the other frames.
    case onlyAddsNoFrames(String)

    /// A client that may only add asked for a download.
    case addOnlyCannotDownload(String)

    // MARK: Limited access

    /// A client with a limited grant asked for something that its view does not have.
    case notInLimitedView(String, String)
    /// The view of the identity has changed while a request ran.
    case viewChanged(String)
    /// The list would be longer than the limit.
    case tooManyAssets(limit: Int)

    // MARK: The owner's decisions

    /// Neither an identity nor a question is named, or both.
    case noSubject
    /// No question with this id waits.
    case noQuestion(String)
    /// A question about consent was approved with options.
    case questionWithOptions
    /// The identity has no access that could be revoked.
    case noAccess(String)
    /// The access of the identity follows from its connection and cannot be decided.
    case decidedByConnection(String)
    /// The identity has no list that could be changed.
    case notLimited(String)
    /// The text is not an identity.
    case noIdentity(String)
    /// No listed key has the identity's name.
    case noKey(String)
    /// The maximum number of grants is reached.
    case tooManyGrants(limit: Int)
}

extension WriterElection {
    /// The servers that have answered this catalog.
    enum Connection: Sendable {
        case answering
        /// The server does not answer, and its replica does.
        case replicaOnly
        /// Neither answers.
        case away
    }
}

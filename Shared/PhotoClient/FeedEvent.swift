public import Contracts
public import PhotoModel

/// An event of the change feed.
public enum FeedEvent: Sendable, Hashable {
    /// A change; each is delivered once, in the order of the sequences. If the feed is filtered by topics, the record
    /// contains only the changes that those topics carry.
    case change(ChangeRecord)
    /// The token is older than the retained history, or of another history (P-30): fetch everything again. The feed
    /// continues after `head`, so a fetch begun now misses nothing.
    case expired(head: ChangeToken, oldest: ChangeToken)
    /// Every event up to this token has been delivered. The feed can be continued from it later.
    case caughtUp(ChangeToken)

    /// The token to store once this event has been processed.
    public var token: ChangeToken {
        switch self {
        case .change(let record): record.token
        case .expired(let head, _): head
        case .caughtUp(let token): token
        }
    }
}

extension ChangeRecord {
    /// Returns the record with only those changes that a filter includes.
    public func restricted(to filter: FeedTopicFilter) -> ChangeRecord {
        if filter.isEverything { return self }
        let topics = filter.topics
        var part = self
        part.assets = assets.filter { topics.contains(FeedTopic.object($0.id)) }
        part.collections = collections.filter { topics.contains(FeedTopic.object($0.id)) }
        part.lists = lists.filter { topics.contains(FeedTopic.object($0.id)) }
        part.edits = edits.filter { topics.contains(FeedTopic.edit($0.id)) }
        if !topics.contains(FeedTopic.grants) { (part.grants, part.questions) = ([], []) }
        return part
    }

    /// True if the record contains no changes, for example after filtering.
    public var isEmpty: Bool {
        assets.isEmpty && collections.isEmpty && lists.isEmpty && edits.isEmpty && grants.isEmpty && questions.isEmpty
    }
}

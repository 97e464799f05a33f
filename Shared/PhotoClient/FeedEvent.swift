public import Contracts
public import PhotoModel

/// What a reader of the change feed is told.
public enum FeedEvent: Sendable, Hashable {
    /// A change, each once and in the order of the sequences. Where the feed was opened for some topics, the record
    /// holds only what those topics carry.
    case change(ChangeRecord)
    /// The history does not reach back to the reader's token, or is another one (spec P-30): fetch everything again.
    /// The feed goes on after `head`, so a fetch begun now misses nothing.
    case expired(head: ChangeToken, oldest: ChangeToken)
    /// Everything up to this token has been told; a reader who keeps it can go on from there another day.
    case caughtUp(ChangeToken)

    /// The token to keep once this event has been dealt with.
    public var token: ChangeToken {
        switch self {
        case .change(let record): record.token
        case .expired(let head, _): head
        case .caughtUp(let token): token
        }
    }
}

extension ChangeRecord {
    /// The record with only those changes that a filter includes.
    public func restricted(to filter: FeedTopicFilter) -> ChangeRecord {
        if filter.isEverything { return self }
        let topics = filter.topics
        var part = self
        part.assets = assets.filter { topics.contains(FeedTopic.object($0.id)) }
        part.collections = collections.filter { topics.contains(FeedTopic.object($0.id)) }
        part.lists = lists.filter { topics.contains(FeedTopic.object($0.id)) }
        part.edits = edits.filter { topics.contains(FeedTopic.edit($0.id)) }
        return part
    }

    /// Nothing was touched, or nothing that the topics carry.
    public var isEmpty: Bool { assets.isEmpty && collections.isEmpty && lists.isEmpty && edits.isEmpty }
}

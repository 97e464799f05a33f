public import JSONValue
public import PhotoModel

/// The topics of the live feed.
public enum FeedTopic {
    /// Every transaction.
    public static let changes = "changes"
    /// The newest and the oldest sequence, once a second (``FeedHead``).
    public static let head = "head"
    /// Grants that were asked for or decided, and questions about consent.
    public static let grants = Grant.topic
    /// The status of the library: it can be read and written, or not (``LibraryStatus``).
    public static let availability = "availability"
    /// Uploads and downloads whose state has changed, or whose transfer proceeds (``UploadJobPage``).
    public static let jobs = "jobs"
    /// The maximum length of a topic, in UTF-8 bytes.
    public static let maxBytes = 64

    /// Returns the topic of an asset, a collection or a list.
    public static func object(_ id: ObjectID) -> String { ChangeRecord.topic(of: id) }

    /// Returns the topic of an observed fetch.
    public static func fetch(_ observation: String) -> String { "fetch.\(observation)" }

    /// Returns the asset that a topic is about; nil for all other topics.
    public static func asset(of topic: String) -> ObjectID? {
        let prefix = ChangeRecord.TopicPrefix.asset
        return topic.hasPrefix(prefix) ? ObjectID(String(Substring(topic.utf8.dropFirst(prefix.utf8.count)))) : nil
    }

    /// Returns the topic of a published edit.
    public static func edit(_ id: String) -> String { ChangeRecord.TopicPrefix.edit + id }
}

/// A filter of change records by topic, used by the catalog, the broker and their clients.
///
/// An empty list, or one that contains `changes`, includes every record.
public struct FeedTopicFilter: Sendable, Hashable {
    /// The topics of which a record must carry one; empty for all records.
    public let topics: Set<String>

    /// Creates a filter without validating the topics; see ``problem(with:)``.
    public init(_ topics: some Sequence<String>) {
        let names = Set(topics)
        self.topics = names.contains(FeedTopic.changes) ? [] : names
    }

    /// The filter that includes every record.
    public static let everything = FeedTopicFilter([])

    /// True if the filter includes every record.
    public var isEverything: Bool { topics.isEmpty }

    /// Returns true if the filter includes a record that carries some topics.
    public func includes(_ carried: some Sequence<String>) -> Bool {
        isEverything || carried.contains(where: topics.contains)
    }

    /// The prefixes of the topics that records carry; an identifier follows.
    private static let prefixes = [
        ChangeRecord.TopicPrefix.asset, ChangeRecord.TopicPrefix.collection, ChangeRecord.TopicPrefix.list,
        ChangeRecord.TopicPrefix.edit,
    ]

    /// Returns an error message if the change log cannot be filtered by a topic; nil if it can. The length of the topic
    /// is not checked.
    public static func problem(with topic: String) -> String? {
        if topic == FeedTopic.changes || topic == FeedTopic.grants { return nil }
        if topic == FeedTopic.head {
            return "the change log cannot be filtered by head: call feed.head, or subscribe to head"
        }
        if topic == FeedTopic.availability {
            return "the change log cannot be filtered by availability: call library.status, or subscribe to it"
        }
        if topic == FeedTopic.jobs {
            return "the change log cannot be filtered by jobs: call jobs.list with changedAfter, or subscribe to it"
        }
        if topic.hasPrefix(FeedTopic.fetch("")) {
            return "the change log cannot be filtered by an observed fetch: call fetch.details"
        }
        let isOfEntity = prefixes.contains { topic.hasPrefix($0) && topic.utf8.count > $0.utf8.count }
        // PostgreSQL has no texts with a zero byte, and no topic has one.
        guard isOfEntity, !topic.utf8.contains(0) else {
            return "\"\(topic.prefix(FeedTopic.maxBytes))\" is not a topic of the change log: use changes, asset.<id>, "
                + "collection.<id>, list.<id>, edit.<id> or grants"
        }
        return nil
    }

    /// Returns `invalid_params` for the first topic that the change log cannot be filtered by; nil if all are valid.
    public static func rpcError(of topics: [String]) -> RPCError? {
        for (index, topic) in topics.enumerated() {
            guard let problem = problem(with: topic) else { continue }
            return ErrorCode.invalidParams.error(problem, ["parameter": .string("topics.\(index)")])
        }
        return nil
    }
}

extension JSONType where Value == [String] {
    /// The type of topics by which the change log can be filtered.
    static var feedTopics: JSONType {
        .list(of: .feedTopic, limit: ChangesSince.maxTopics)
    }
}

extension JSONType where Value == String {
    fileprivate static var feedTopic: JSONType {
        let text = JSONType.text(maxBytes: FeedTopic.maxBytes)
        return JSONType(
            schema: text.schema(),
            decode: { (json: JSON) throws(JSONProblem) in
                let topic = try text.decode(json)
                if let problem = FeedTopicFilter.problem(with: topic) { throw JSONProblem(problem) }
                return topic
            },
            encode: text.encode
        )
    }
}

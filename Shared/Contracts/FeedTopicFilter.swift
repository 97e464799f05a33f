import JSONValue
public import Messaging

/// Which records of the change log a reader asks for: the one rule for the catalog, the broker and their clients
/// (DESIGN 3.3).
///
/// No topics, or `changes` among them, mean every record.
public struct FeedTopicFilter: Sendable, Hashable {
    /// A record is included if it carries one of these; empty: every record is.
    public let topics: Set<String>

    /// A filter of topics that are not checked: see ``problem(with:)``.
    public init(_ topics: some Sequence<String>) {
        let names = Set(topics)
        self.topics = names.contains(FeedTopic.changes) ? [] : names
    }

    /// Every record.
    public static let everything = FeedTopicFilter([])

    /// Whether every record is included.
    public var isEverything: Bool { topics.isEmpty }

    /// Whether a record that carries some topics is included.
    public func includes(_ carried: some Sequence<String>) -> Bool {
        isEverything || carried.contains(where: topics.contains)
    }

    /// The beginnings of the topics that records carry; an identifier follows.
    private static let families = ["asset.", "collection.", "list.", "edit."]

    /// Why a topic cannot be a filter of the log, in words for the person who named it; nil if it can. Its length is not
    /// looked at.
    public static func problem(with topic: String) -> String? {
        if topic == FeedTopic.changes { return nil }
        if topic == FeedTopic.head {
            return "head is no part of the log and cannot be a filter of it: call feed.head, or subscribe to head"
        }
        if topic.hasPrefix(FeedTopic.fetch("")) {
            return "what becomes of an observed fetch is no part of the log and cannot be a filter of it: call "
                + "fetch.details"
        }
        guard families.contains(where: { topic.hasPrefix($0) && topic.utf8.count > $0.utf8.count }) else {
            return "\"\(topic.prefix(FeedTopic.maxBytes))\" is no topic of the log: use changes, asset.<id>, "
                + "collection.<id>, list.<id> or edit.<id>"
        }
        return nil
    }

    /// The refusal of a list of topics with one that cannot be a filter; nil if all can.
    public static func refusal(of topics: [String]) -> RPCError? {
        for (index, topic) in topics.enumerated() {
            guard let problem = problem(with: topic) else { continue }
            return Refusal.invalidParams.error(problem, ["parameter": .string("topics.\(index)")])
        }
        return nil
    }
}

extension JSONType where Value == [String] {
    /// Topics by which the log is filtered.
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

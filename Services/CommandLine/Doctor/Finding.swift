import JSONValue

/// The result of one check of `safelight doctor`.
struct Finding: Sendable, Equatable {
    enum Level: String, Sendable, Comparable, CaseIterable {
        case ok, warning, problem

        static func < (left: Level, right: Level) -> Bool { left.status < right.status }

        /// The exit status if this is the worst level of all findings.
        var status: Int32 {
            switch self {
            case .ok: 0
            case .warning: 1
            case .problem: 2
            }
        }
    }

    var level: Level
    /// The subject of the check, in a word or two.
    var subject: String
    /// The observation.
    var text: String
    /// The suggested fix; empty if none is necessary.
    var advice = ""

    static func ok(_ subject: String, _ text: String) -> Finding { Finding(level: .ok, subject: subject, text: text) }

    static func warning(_ subject: String, _ text: String, _ advice: String) -> Finding {
        Finding(level: .warning, subject: subject, text: text, advice: advice)
    }

    static func problem(_ subject: String, _ text: String, _ advice: String) -> Finding {
        Finding(level: .problem, subject: subject, text: text, advice: advice)
    }

    var json: JSON {
        var json: JSONObject = [
            "level": .string(level.rawValue), "subject": .string(subject), "text": .string(text),
        ]
        if !advice.isEmpty { json["advice"] = .string(advice) }
        return .object(json)
    }

    var lines: [String] {
        let word = level.rawValue + String(repeating: " ", count: 8 - level.rawValue.count)
        let indent = String(repeating: " ", count: 10)
        return ["\(word)  \(subject.printable): \(text.printable)"]
            + (advice.isEmpty ? [] : [indent + advice.printable])
    }
}

import JSONValue

/// One thing that the doctor looked at.
struct Finding: Sendable, Equatable {
    enum Level: String, Sendable, Comparable, CaseIterable {
        case ok, warning, problem

        static func < (left: Level, right: Level) -> Bool { left.status < right.status }

        /// The exit status, where this is the worst.
        var status: Int32 {
            switch self {
            case .ok: 0
            case .warning: 1
            case .problem: 2
            }
        }
    }

    var level: Level
    /// What was looked at, in a word or two.
    var subject: String
    /// What was seen.
    var text: String
    /// What to do; empty where all is well.
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

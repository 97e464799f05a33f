import Contracts
import Basics
import JSONValue
import PhotoModel

/// One line of edits to be published: an edit as `edits.publish` has it, whose id may be left out.
struct PublishedLine: Sendable, Equatable {
    /// The longest line, in bytes.
    static let maxBytes = 128 << 10

    /// Counted from 1.
    let number: Int
    var edit: PublishEdit

    /// Reads a line; nil where it is blank.
    ///
    /// A line without an id gets one made of the run's name, its number and its content: the same lines again are the
    /// same edits, so that a run that was stopped goes on where it was.
    ///
    /// - Parameters:
    ///   - name: tells runs apart whose lines are the same
    ///   - previous: the id of the edit of the asset before this one, of the same run; nil: not chained
    /// - Throws: ``CommandFailure`` that says what is wrong with the line
    init?(_ bytes: [UInt8], number: Int, name: String, previous: (ObjectID) -> String?) throws(CommandFailure) {
        guard bytes.contains(where: { $0 > 0x20 }) else { return nil }
        do throws(JSONProblem) {
            guard bytes.count <= Self.maxBytes else { throw JSONProblem("longer than \(Self.maxBytes) bytes") }
            guard let json = try? JSON(parsing: bytes), var object = json.objectValue else {
                throw JSONProblem("no JSON object; an edit is {\"asset\": …, \"adjustments\": {\"version\": 1, …}}")
            }
            if object["id"] == nil { object["id"] = .string(Self.id(of: json, number: number, name: name)) }
            edit = try PublishEdit.read(.object(object))
            if edit.predecessor == nil { edit.predecessor = previous(edit.asset) }
        } catch {
            throw CommandFailure(
                message: "line \(number): \(error.description)",
                name: Refusal.invalidParams.rawValue,
                data: ["line": JSON(number)]
            )
        }
        self.number = number
    }

    /// 32 hexadecimal digits.
    private static func id(of json: JSON, number: Int, name: String) -> String {
        let hash = SHA256.hash(data: Array("\(name)\n\(number)\n\(json.canonical.text)".utf8))
        return hash.prefix(16).hexadecimal
    }
}

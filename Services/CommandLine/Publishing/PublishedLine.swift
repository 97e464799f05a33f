import Contracts
import Basics
import JSONValue
import PhotoModel

/// One line of the input of `safelight publish`: the parameters of `edits.publish`, with an optional id.
struct PublishedLine: Sendable, Equatable {
    /// The maximum length of a line in bytes.
    static let maxBytes = 128 << 10

    /// The number of the line, from 1.
    let number: Int
    var edit: PublishEdit

    /// Parses a line. Returns nil if it is blank.
    ///
    /// A line without an id gets one derived from the name of the run, the line's number and its content. The same
    /// lines therefore are the same edits, and a run that was stopped can be repeated.
    ///
    /// - Parameters:
    ///   - name: the name of the run, which separates runs with the same lines
    ///   - previous: returns the id of the run's previous edit of an asset, or nil if edits are not chained
    /// - Throws: ``CommandFailure`` if the line is not a valid edit
    init?(_ bytes: [UInt8], number: Int, name: String, previous: (ObjectID) -> String?) throws(CommandFailure) {
        guard bytes.contains(where: { $0 > 0x20 }) else { return nil }
        do throws(JSONProblem) {
            guard bytes.count <= Self.maxBytes else { throw JSONProblem("longer than \(Self.maxBytes) bytes") }
            guard let json = try? JSON(parsing: bytes), var object = json.objectValue else {
                throw JSONProblem("not a JSON object; an edit is {\"asset\": …, \"adjustments\": {\"version\": 1, …}}")
            }
            if object["id"] == nil { object["id"] = .string(Self.id(of: json, number: number, name: name)) }
            edit = try PublishEdit.read(.object(object))
            if edit.predecessor == nil { edit.predecessor = previous(edit.asset) }
        } catch {
            throw CommandFailure(
                message: "line \(number): \(error.description)",
                name: ErrorCode.invalidParams.rawValue,
                data: ["line": JSON(number)]
            )
        }
        self.number = number
    }

    /// Returns the derived id: 32 hexadecimal digits.
    private static func id(of json: JSON, number: Int, name: String) -> String {
        let hash = SHA256.hash(data: Array("\(name)\n\(number)\n\(json.canonical.text)".utf8))
        return hash.prefix(16).hexadecimal
    }
}

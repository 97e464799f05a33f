import JSONValue

/// The reason why JSON is not an adjustment list of version 1.
public struct AdjustmentError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of error, with the text of its description.
    public enum Reason: String, Sendable, Hashable {
        case malformed = "is missing or has the wrong shape"
        case unknownVersion = "is not a supported version"
        case unknownOperation = "is not an operation"
        case unknownMember = "is not a known member"
        case outOfRange = "is out of range"
        case tooManyOperations = "has too many operations"
    }

    /// The kind of error.
    public let reason: Reason
    /// The index of the operation, from 0; `nil` if the fault lies outside the operations.
    public let index: Int?
    /// The member at fault.
    public let member: String?
    /// The value that was found.
    public let found: String?
    /// The values that are allowed.
    public let allowed: [String]

    init(_ reason: Reason, index: Int? = nil, member: String? = nil, found: String? = nil, allowed: [String]) {
        self.reason = reason
        self.index = index
        self.member = member
        self.found = found
        self.allowed = allowed
    }

    public var description: String {
        let prefix = index.map { "operation \($0): " } ?? "adjustments: "
        let subject = (member.map { "\"\($0)\"" } ?? "the value") + (found.map { " (\($0))" } ?? "")
        return "\(prefix)\(subject) \(reason.rawValue); allowed: \(allowed.joined(separator: ", "))"
    }
}

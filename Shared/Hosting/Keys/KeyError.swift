/// A problem with keys or their files, with advice.
public enum KeyError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A file or folder is accessible to users other than its owner.
    case unsafe(path: String, reason: String)
    /// A file is not a valid certificate; `reason` names the problem and its line.
    case notACertificate(path: String, reason: String)
    /// A file or folder does not exist.
    case missing(path: String, advice: String)
    /// A system call failed.
    case failed(path: String, reason: String)
    /// A key name is invalid: 1 to 64 letters, digits and `.`, `-`, `_`, `@`, of which the first is a letter or digit.
    case badName(String)
    /// The name belongs to another key, or the key has another name.
    case taken(String, reason: String)
    /// No list has a key with this name.
    case unknown(String)
    /// A list has more keys than allowed.
    case tooMany(path: String, limit: Int)

    public var description: String {
        switch self {
        case .unsafe(let path, let reason): "\(path) is not safe: \(reason)"
        case .notACertificate(let path, let reason): "\(path) is not a ZeroMQ certificate file: \(reason)"
        case .missing(let path, let advice): "\(path) does not exist; \(advice)"
        case .failed(let path, let reason): "\(path): \(reason)"
        case .badName(let name):
            "\"\(name.prefix(80))\" is not a key name: use 1 to 64 letters, digits and . - _ @, first a letter or digit"
        case .taken(let name, let reason): "\(name): \(reason)"
        case .unknown(let name): "no key named \(name) is on a list; `safelight keys list` shows them"
        case .tooMany(let path, let limit): "\(path) has more than \(limit) keys; revoke some"
        }
    }
}

/// What is wrong with keys and their files, with what to do about it.
public enum KeyError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A file or a folder that only its owner may read or change can be reached by others.
    case unsafe(path: String, reason: String)
    /// A file that is no certificate; `reason` says where.
    case notACertificate(path: String, reason: String)
    /// There is no such file or folder.
    case missing(path: String, advice: String)
    /// The system refuses to read or write.
    case failed(path: String, reason: String)
    /// The name cannot be one: letters, digits, `.`, `-`, `_`, `@`; 1 to 64 bytes, the first a letter or a digit.
    case badName(String)
    /// Another key has the name already, or the key another name.
    case taken(String, reason: String)
    /// Nobody of that name is on a list.
    case unknown(String)
    /// A list would hold more keys than are read.
    case tooMany(path: String, limit: Int)

    public var description: String {
        switch self {
        case .unsafe(let path, let reason): "\(path) is not safe: \(reason)"
        case .notACertificate(let path, let reason): "\(path) is no key file in ZeroMQ's certificate format: \(reason)"
        case .missing(let path, let advice): "there is no \(path); \(advice)"
        case .failed(let path, let reason): "\(path): \(reason)"
        case .badName(let name):
            "\"\(name.prefix(80))\" is no name for a key: 1 to 64 letters, digits and . - _ @, the first a letter or a digit"
        case .taken(let name, let reason): "\(name): \(reason)"
        case .unknown(let name): "no key named \(name) is on a list; `safelight keys list` shows them"
        case .tooMany(let path, let limit): "\(path) has more than \(limit) keys; revoke some"
        }
    }
}

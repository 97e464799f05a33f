public import Messaging

/// A key file in ZeroMQ's certificate format, as read by `zmq.auth.load_certificate` of pyzmq and `zcert_load` of czmq.
public struct Certificate: Sendable, Equatable {
    public var publicKey: CurvePublicKey
    /// The secret key; nil in a public certificate.
    public var secretKey: CurveSecretKey?
    /// The metadata section: names and values without quotation marks.
    public var metadata: [(name: String, value: String)] = []

    /// Creates a certificate without metadata.
    public init(publicKey: CurvePublicKey, secretKey: CurveSecretKey? = nil) {
        self.publicKey = publicKey
        self.secretKey = secretKey
    }

    public static func == (left: Certificate, right: Certificate) -> Bool {
        left.publicKey == right.publicKey && left.secretKey == right.secretKey
            && left.metadata.elementsEqual(right.metadata) { $0 == $1 }
    }

    /// Reads the public part of a file; a secret key in it is ignored.
    public init(readingPublic path: String) throws(KeyError) {
        self = try KeyFile.read(path, isSecret: false).publicPart
    }

    /// Both keys; nil if there is no secret key, or if they do not match.
    public var pair: CurveKeyPair? { secretKey.flatMap { CurveKeyPair(publicKey: publicKey, secretKey: $0) } }

    /// The certificate without its secret key.
    public var publicPart: Certificate {
        var part = self
        part.secretKey = nil
        return part
    }

    /// Maximum size of a file in bytes.
    public static let maxBytes = 16 << 10

    // MARK: Text

    /// The text of the file.
    public var text: String {
        var lines: [String]
        if secretKey != nil {
            lines = [
                "#   ZeroMQ CURVE **Secret** Certificate, made by Safelight",
                "#   DO NOT PROVIDE THIS FILE TO OTHER USERS nor change its permissions.",
            ]
        } else {
            lines = [
                "#   ZeroMQ CURVE Public Certificate, made by Safelight",
                "#   Exchange securely, or use a secure mechanism to verify the contents",
                "#   of this file after exchange.",
            ]
        }
        lines += ["", "metadata"]
        lines += metadata.map { "    \($0.name) = \"\($0.value)\"" }
        lines += ["curve", "    public-key = \"\(publicKey.text)\""]
        if let secretKey { lines.append("    secret-key = \"\(secretKey.text)\"") }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Parses the text of a file: section names without indentation, `name = "value"` below them, comments after `#`.
    ///
    /// Throws ``KeyError/notACertificate(path:reason:)``.
    public init(text: String, path: String) throws(KeyError) {
        func refuse(_ reason: String) -> KeyError { .notACertificate(path: path, reason: reason) }
        guard text.utf8.count <= Self.maxBytes else { throw refuse("it has more than \(Self.maxBytes) bytes") }
        var section = ""
        var found: [String: String] = [:]
        var metadata: [(name: String, value: String)] = []
        for (number, line) in text.split(
            omittingEmptySubsequences: false,
            whereSeparator: { $0 == "\n" || $0 == "\r\n" }
        ).enumerated() {
            let content = line.trimmed
            if content.isEmpty || content.hasPrefix("#") { continue }
            guard let mark = content.firstIndex(of: "=") else {
                section = String(content)
                continue
            }
            let name = String(content[..<mark].trimmed)
            guard let value = content[content.index(after: mark)...].trimmed.unquoted else {
                throw refuse("line \(number + 1): a quotation mark is missing")
            }
            switch section {
            case "metadata": metadata.append((name, value))
            case "curve":
                guard found.updateValue(value, forKey: name) == nil else {
                    throw refuse("line \(number + 1): \(name) is duplicated")
                }
            default: continue
            }
        }
        guard let text = found["public-key"] else { throw refuse("it has no public-key below curve") }
        guard let publicKey = CurvePublicKey(text) else { throw refuse("its public-key is not 40 characters of Z85") }
        self.init(publicKey: publicKey)
        self.metadata = metadata
        guard let secret = found["secret-key"] else { return }
        guard let secretKey = CurveSecretKey(secret) else { throw refuse("its secret-key is not 40 characters of Z85") }
        guard CurveKeyPair(publicKey: publicKey, secretKey: secretKey) != nil else {
            throw refuse("its public and secret key do not match")
        }
        self.secretKey = secretKey
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var rest = self
        while let first = rest.first, first == " " || first == "\t" || first == "\r" || first == "\r\n" {
            rest.removeFirst()
        }
        while let last = rest.last, last == " " || last == "\t" || last == "\r" || last == "\r\n" { rest.removeLast() }
        return rest
    }

    /// The text without surrounding quotation marks; nil if one of the two is missing.
    fileprivate var unquoted: String? {
        for mark: Character in ["\"", "'"] where first == mark {
            guard count >= 2, last == mark else { return nil }
            return String(dropFirst().dropLast())
        }
        return String(self)
    }
}

/// The peer of a CURVE connection: its key, and the key's name on the list at the time of the connection.
///
/// The ``ZAPAuthenticator`` returns both to libzmq as the connection's user id, and libzmq attaches it to each message.
struct CurveIdentity: Sendable, Hashable {
    /// The public key, 40 characters of Z85.
    let key: String
    let name: String

    private static let keyLength = 40

    init(key: String, name: String) {
        self.key = key
        self.name = name
    }

    /// Parses libzmq's `User-Id` property; nil if it is too short.
    init?(userID: String) {
        guard userID.utf8.count > Self.keyLength, let key = String(userID.utf8.prefix(Self.keyLength)),
            let name = String(userID.utf8.dropFirst(Self.keyLength))
        else { return nil }
        self.init(key: key, name: name)
    }

    var userID: String { key + name }

    /// The identity that handlers see.
    var identity: String { "key:\(name)" }
}

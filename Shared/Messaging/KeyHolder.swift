/// Who is at the other end of a CURVE connection: a key, and the name under which it stood on the list when it connected.
///
/// The doorkeeper gives both to libzmq as the connection's user id, and each message brings them back.
struct KeyHolder: Sendable, Hashable {
    /// 40 characters of Z85.
    let key: String
    let name: String

    private static let keyLength = 40

    init(key: String, name: String) {
        self.key = key
        self.name = name
    }

    /// Reads libzmq's `User-Id`.
    init?(userID: String) {
        guard userID.utf8.count > Self.keyLength, let key = String(userID.utf8.prefix(Self.keyLength)),
            let name = String(userID.utf8.dropFirst(Self.keyLength))
        else { return nil }
        self.init(key: key, name: name)
    }

    var userID: String { key + name }

    /// As handlers see it.
    var identity: String { "key:\(name)" }
}

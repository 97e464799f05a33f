import Glibc
public import Messaging

/// A list of keys that may connect.
public enum KeyList: String, Sendable, CaseIterable {
    /// Requests to any service.
    case requests
    /// The live feed of the whole library.
    case feed
    /// Publishing edits.
    case edits
    /// Services on other machines: they may act for clients. It opens no door by itself: a service is on `requests` too.
    case services
}

/// One key on one or more lists.
public struct ListedKey: Sendable, Equatable {
    public let name: String
    public let publicKey: CurvePublicKey
    public var lists: [KeyList]
}

/// The folder with a house's keys.
///
///     server.key  server.key_secret           the services' own pair
///     clients/requests/NAME.key               who may ask
///     clients/feed/NAME.key                   who may read the whole library's feed
///     clients/edits/NAME.key                  who may publish edits
///     clients/services/NAME.key               who may act for others
///     made/NAME/                              keys made here, for their owner to take away
///
/// Being on a list is being in its folder: nothing has to be restarted.
public struct KeyFolder: Sendable, Equatable {
    /// Absolute.
    public let path: String
    /// Keys of one list that are read.
    public static let maxKeys = 10_000

    /// The folder at a path; nothing is made or read yet.
    public init(path: String) { self.path = path }

    /// The folder by flag, then `SAFELIGHT_KEYS`, then `$XDG_CONFIG_HOME/safelight/keys`, else
    /// `~/.config/safelight/keys`.
    public init(flag: String?, environment: (String) -> String? = { Environment[$0] }) throws(HostingError) {
        if let path = flag ?? environment("SAFELIGHT_KEYS") {
            guard path.hasPrefix("/") else {
                throw .badSetting(source: "--keys", reason: "\(path) is no absolute path")
            }
            self.init(path: path)
        } else if let config = environment("XDG_CONFIG_HOME") {
            self.init(path: config + "/safelight/keys")
        } else if let home = environment("HOME") {
            self.init(path: home + "/.config/safelight/keys")
        } else {
            throw .badSetting(source: "--keys", reason: "there is no HOME; say where the keys are")
        }
    }

    /// The public certificate of the services, which clients need.
    public var serverFile: String { path + "/server.key" }
    private var serverSecretFile: String { path + "/server.key_secret" }

    /// The folder of a list.
    public func folder(of list: KeyList) -> String { "\(path)/clients/\(list.rawValue)" }

    func file(_ name: String, _ list: KeyList) -> String { "\(folder(of: list))/\(name).key" }

    /// Makes the folders where they are missing and checks them.
    public func prepare() throws(KeyError) {
        try KeyFile.makeFolder(path)
        try KeyFile.makeFolder(path + "/clients")
        for list in KeyList.allCases { try KeyFile.makeFolder(folder(of: list)) }
    }

    // MARK: The services' own pair

    /// Makes the services' pair where there is none.
    ///
    /// - Returns: the pair, and whether it is new
    public func makeServer() throws -> (pair: CurveKeyPair, isNew: Bool) {
        try prepare()
        do throws(KeyError) {
            return (try server(), false)
        } catch {
            guard case .missing = error else { throw error }
        }
        let pair = try CurveKeyPair.generate()
        var certificate = Certificate(publicKey: pair.publicKey, secretKey: pair.secretKey)
        certificate.metadata = [("name", "server")]
        // The secret last: it alone says that there is a pair.
        try KeyFile.write(certificate.publicPart, to: serverFile, replacing: true)
        try KeyFile.write(certificate, to: serverSecretFile)
        return (pair, true)
    }

    /// The services' pair.
    public func server() throws(KeyError) -> CurveKeyPair {
        try KeyFile.checkFolder(path)
        let certificate = try KeyFile.read(
            serverSecretFile,
            isSecret: true,
            advice: "make it with: safelight keys server --keys \(path)"
        )
        guard let pair = certificate.pair else {
            throw .notACertificate(path: serverSecretFile, reason: "it has no secret-key")
        }
        return pair
    }

    // MARK: Clients

    /// Makes a pair, puts its public key on lists, and both keys with the services' public key into a folder for their
    /// owner.
    ///
    /// - Parameters:
    ///   - output: that folder; it is made
    /// - Returns: the public certificate
    public func create(_ name: String, lists: [KeyList], output: String) throws -> Certificate {
        try Self.check(name)
        try prepare()
        let server = try server()
        guard try keys().allSatisfy({ $0.name != name }) else {
            throw KeyError.taken(name, reason: "there is a key of this name; revoke it first, or choose another name")
        }
        let pair = try CurveKeyPair.generate()
        var certificate = Certificate(publicKey: pair.publicKey, secretKey: pair.secretKey)
        certificate.metadata = [("name", name)]
        try KeyFile.makeFolder(output)
        try KeyFile.write(certificate, to: "\(output)/\(name).key_secret")
        try KeyFile.write(certificate.publicPart, to: "\(output)/\(name).key")
        var ours = Certificate(publicKey: server.publicKey)
        ours.metadata = [("name", "server")]
        try KeyFile.write(ours, to: "\(output)/server.key", replacing: true)
        try admit(certificate.publicPart, as: name, to: lists)
        return certificate.publicPart
    }

    /// Where keys made here wait for their owner.
    public func usualOutput(of name: String) -> String { "\(path)/made/\(name)" }

    /// Whether a client's secret key is in a folder.
    public func hasSecret(of name: String, in output: String) -> Bool {
        (try? KeyFile.read("\(output)/\(name).key_secret", isSecret: true).pair) != nil
    }

    /// The public certificate of somebody on a list, or of the services under the name `server`.
    public func publicCertificate(of name: String) throws(KeyError) -> Certificate {
        try KeyFile.checkFolder(path)
        if let key = try keys().first(where: { $0.name == name }), let list = key.lists.first {
            return try KeyFile.read(file(name, list), isSecret: false).publicPart
        }
        guard name == "server" else { throw .unknown(name) }
        return try KeyFile.read(serverFile, isSecret: false, advice: "make it with: safelight keys server").publicPart
    }

    /// Puts somebody's public key on lists.
    public func admit(_ certificate: Certificate, as name: String, to lists: [KeyList]) throws(KeyError) {
        try Self.check(name)
        try prepare()
        for key in try keys() {
            if key.name == name, key.publicKey != certificate.publicKey {
                throw .taken(name, reason: "another key has this name; revoke it first, or choose another name")
            }
            if key.publicKey == certificate.publicKey, key.name != name {
                throw .taken(name, reason: "this key is on the lists already, as \(key.name)")
            }
        }
        for list in lists {
            guard try KeyFile.names(in: folder(of: list)).count < Self.maxKeys else {
                throw .tooMany(path: folder(of: list), limit: Self.maxKeys)
            }
            var part = certificate.publicPart
            part.metadata = [("name", name)]
            try KeyFile.write(part, to: file(name, list), replacing: true)
        }
    }

    /// Takes a key off its lists, or off some of them; services notice within two seconds.
    ///
    /// - Returns: the lists that it was on
    @discardableResult
    public func revoke(_ name: String, from lists: [KeyList] = KeyList.allCases) throws(KeyError) -> [KeyList] {
        try Self.check(name)
        try KeyFile.checkFolder(path)
        var left: [KeyList] = []
        for list in lists {
            if unlink(file(name, list)) == 0 {
                left.append(list)
            } else if errno != ENOENT {
                throw .failed(path: file(name, list), reason: KeyFile.errorText)
            }
        }
        guard !left.isEmpty else { throw .unknown(name) }
        return left
    }

    /// Everybody on a list, by name.
    public func keys() throws(KeyError) -> [ListedKey] {
        try KeyFile.checkFolder(path)
        var keys: [String: ListedKey] = [:]
        for list in KeyList.allCases {
            for (name, key) in try read(list).keys {
                // The same name with another key, put there by hand, is shown as a key of its own.
                let id = name + " " + key.text
                keys[id, default: ListedKey(name: name, publicKey: key, lists: [])].lists.append(list)
            }
        }
        return keys.sorted { $0.key < $1.key }.map(\.value)
    }

    /// The keys of a list, and what is wrong with files that could not be read.
    func read(_ list: KeyList) throws(KeyError) -> (keys: [(name: String, key: CurvePublicKey)], problems: [KeyError]) {
        var keys: [(name: String, key: CurvePublicKey)] = []
        var problems: [KeyError] = []
        for name in try KeyFile.names(in: folder(of: list)) where name.hasSuffix(".key") {
            let title = String(name.dropLast(4))
            do throws(KeyError) {
                try Self.check(title)
                keys.append((title, try KeyFile.read(file(title, list), isSecret: false).publicKey))
            } catch {
                problems.append(error)
            }
        }
        guard keys.count <= Self.maxKeys else { throw .tooMany(path: folder(of: list), limit: Self.maxKeys) }
        return (keys, problems)
    }

    /// Whether a name can be one.
    static func check(_ name: String) throws(KeyError) {
        guard name != "server" else { throw .taken(name, reason: "this is the services' own name") }
        func isPlain(_ byte: UInt8) -> Bool {
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        }
        guard let first = name.utf8.first, isPlain(first), name.utf8.count <= 64,
            name.utf8.allSatisfy({ isPlain($0) || ".-_@".utf8.contains($0) })
        else { throw .badName(name) }
    }
}

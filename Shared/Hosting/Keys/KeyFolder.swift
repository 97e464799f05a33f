import Glibc
public import Messaging

/// A list of keys that are allowed to connect.
public enum KeyList: String, Sendable, CaseIterable {
    /// Allows requests to all services.
    case requests
    /// Allows subscribing to the live feed of the whole library.
    case feed
    /// Allows publishing edits.
    case edits
    /// Services on other machines, which may act for clients. It does not allow connecting: a service is also on
    /// `requests`.
    case services
}

/// A key with the lists it is on.
public struct ListedKey: Sendable, Equatable {
    public let name: String
    public let publicKey: CurvePublicKey
    public var lists: [KeyList]
    /// The access of the key's owner, as stated in the file of the first list.
    public var statement = KeyStatement()
}

/// The folder with the keys of the services and their clients.
///
///     server.key  server.key_secret           the key pair of the services
///     clients/requests/NAME.key               keys that may send requests
///     clients/feed/NAME.key                   keys that may read the feed of the whole library
///     clients/edits/NAME.key                  keys that may publish edits
///     clients/services/NAME.key               keys of services that may act for clients
///     made/NAME/                              generated keys, to be moved to their owner's machine
///
/// A key is on a list if its file is in the list's folder; services need no restart after a change.
public struct KeyFolder: Sendable, Equatable {
    /// The absolute path.
    public let path: String
    /// Maximum number of keys on a list.
    public static let maxKeys = 10_000

    /// Creates the value for a path; nothing is created or read on disk.
    public init(path: String) { self.path = path }

    /// Resolves the folder: the flag, `SAFELIGHT_KEYS`, `$XDG_CONFIG_HOME/safelight/keys`, else
    /// `~/.config/safelight/keys`.
    public init(flag: String?, environment: (String) -> String? = { Environment[$0] }) throws(HostingError) {
        if let path = flag ?? environment("SAFELIGHT_KEYS") {
            guard path.hasPrefix("/") else {
                throw .badSetting(source: "--keys", reason: "\(path) is not an absolute path")
            }
            self.init(path: path)
        } else if let config = environment("XDG_CONFIG_HOME") {
            self.init(path: config + "/safelight/keys")
        } else if let home = environment("HOME") {
            self.init(path: home + "/.config/safelight/keys")
        } else {
            throw .badSetting(source: "--keys", reason: "HOME is not set; give the folder of the keys")
        }
    }

    /// Path of the services' public certificate, which clients need.
    public var serverFile: String { path + "/server.key" }
    private var serverSecretFile: String { path + "/server.key_secret" }

    /// Returns the path of a list's folder.
    public func folder(of list: KeyList) -> String { "\(path)/clients/\(list.rawValue)" }

    func file(_ name: String, _ list: KeyList) -> String { "\(folder(of: list))/\(name).key" }

    /// Creates missing folders and checks all of them.
    public func prepare() throws(KeyError) {
        try KeyFile.makeFolder(path)
        try KeyFile.makeFolder(path + "/clients")
        for list in KeyList.allCases { try KeyFile.makeFolder(folder(of: list)) }
    }

    // MARK: The services' key pair

    /// Generates the services' key pair if there is none.
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
        // The secret key is written last, because its file decides whether a pair exists.
        try KeyFile.write(certificate.publicPart, to: serverFile, replacing: true)
        try KeyFile.write(certificate, to: serverSecretFile)
        return (pair, true)
    }

    /// Reads the services' key pair.
    public func server() throws(KeyError) -> CurveKeyPair {
        try KeyFile.checkFolder(path)
        let certificate = try KeyFile.read(
            serverSecretFile,
            isSecret: true,
            advice: "create it with: safelight keys server --keys \(path)"
        )
        guard let pair = certificate.pair else {
            throw .notACertificate(path: serverSecretFile, reason: "it has no secret-key")
        }
        return pair
    }

    // MARK: Clients

    /// Generates a client's key pair, adds its public key to lists, and writes both keys and the services' public key
    /// to a folder for the client.
    ///
    /// The file of the secret key is renamed last. An interrupted call is completed by the next one with the same key,
    /// which is then on the lists of that call only.
    ///
    /// - Parameters:
    ///   - output: path of that folder, which is created
    ///   - statement: the client's access, as stated in the files of the lists
    /// - Returns: the public certificate
    public func create(
        _ name: String,
        lists: [KeyList],
        output: String,
        statement: KeyStatement = KeyStatement()
    ) throws -> Certificate {
        try Self.check(name)
        try prepare()
        let server = try server()
        let secretFile = Self.secretFile(of: name, in: output)
        guard !hasSecret(of: name, in: output) else {
            let reason = "\(secretFile) exists; put its key on lists with `safelight keys admit`, or move it away"
            throw KeyError.taken(name, reason: reason)
        }
        let newFile = secretFile + ".new"
        let interrupted = try access(newFile, F_OK) == 0 ? KeyFile.read(newFile, isSecret: true) : nil
        guard try keys().allSatisfy({ $0.name != name || $0.publicKey == interrupted?.publicKey }) else {
            throw KeyError.taken(name, reason: "a key with this name exists; revoke it first, or choose another name")
        }
        try KeyFile.makeFolder(output)
        let certificate = try interrupted ?? Self.newCertificate(of: name, in: newFile)
        try KeyFile.write(certificate.publicPart, to: "\(output)/\(name).key", replacing: true)
        var ours = Certificate(publicKey: server.publicKey)
        ours.metadata = [("name", "server")]
        try KeyFile.write(ours, to: "\(output)/server.key", replacing: true)
        // The interrupted call may have had other lists.
        let others = KeyList.allCases.filter { !lists.contains($0) && access(file(name, $0), F_OK) == 0 }
        if !others.isEmpty { try revoke(name, from: others) }
        try admit(certificate.publicPart, as: name, to: lists, statement: statement)
        guard rename(newFile, secretFile) == 0 else {
            throw KeyError.failed(path: secretFile, reason: KeyFile.errorText)
        }
        return certificate.publicPart
    }

    /// Generates a client's key pair, and writes it to a file.
    private static func newCertificate(of name: String, in file: String) throws -> Certificate {
        let pair = try CurveKeyPair.generate()
        var certificate = Certificate(publicKey: pair.publicKey, secretKey: pair.secretKey)
        certificate.metadata = [("name", name)]
        try KeyFile.write(certificate, to: file)
        return certificate
    }

    /// Returns the default folder for a client's generated keys.
    public func defaultOutput(of name: String) -> String { "\(path)/made/\(name)" }

    private static func secretFile(of name: String, in output: String) -> String { "\(output)/\(name).key_secret" }

    /// Returns whether the file of a client's secret key is in a folder.
    public func hasSecret(of name: String, in output: String) -> Bool {
        access(Self.secretFile(of: name, in: output), F_OK) == 0
    }

    /// Returns false if a folder of a client's keys has the public key of other services.
    public func isOfTheseServices(_ output: String) -> Bool {
        guard let theirs = try? KeyFile.read("\(output)/server.key", isSecret: false), let ours = try? server() else {
            return true
        }
        return theirs.publicKey == ours.publicKey
    }

    /// Reads the public certificate of a listed key, or of the services for the name `server`.
    public func publicCertificate(of name: String) throws(KeyError) -> Certificate {
        try KeyFile.checkFolder(path)
        if let key = try keys().first(where: { $0.name == name }), let list = key.lists.first {
            return try KeyFile.read(file(name, list), isSecret: false).publicPart
        }
        guard name == "server" else { throw .unknown(name) }
        return try KeyFile.read(serverFile, isSecret: false, advice: "create it with: safelight keys server").publicPart
    }

    /// Adds a public key to lists under a name.
    ///
    /// - Parameter statement: the client's access, as stated in the files of the lists; nil for the statement in its
    ///   file on another list, else readWrite
    public func admit(
        _ certificate: Certificate,
        as name: String,
        to lists: [KeyList],
        statement: KeyStatement? = nil
    ) throws(KeyError) {
        try Self.check(name)
        try prepare()
        for key in try keys() {
            if key.name == name, key.publicKey != certificate.publicKey {
                throw .taken(name, reason: "another key has this name; revoke it first, or choose another name")
            }
            if key.publicKey == certificate.publicKey, key.name != name {
                throw .taken(name, reason: "this key is already listed as \(key.name)")
            }
        }
        var statement = statement
        for list in KeyList.allCases where statement == nil {
            statement = try read(list).keys.first { $0.name == name }?.statement
        }
        for list in lists {
            guard try KeyFile.names(in: folder(of: list)).count < Self.maxKeys else {
                throw .tooMany(path: folder(of: list), limit: Self.maxKeys)
            }
            var part = certificate.publicPart
            part.metadata = [("name", name)] + (statement ?? KeyStatement()).metadata
            try KeyFile.write(part, to: file(name, list), replacing: true)
        }
    }

    /// Removes a key from its lists, or from some of them; services notice within two seconds.
    ///
    /// - Returns: the lists that it was removed from
    @discardableResult
    public func revoke(_ name: String, from lists: [KeyList] = KeyList.allCases) throws(KeyError) -> [KeyList] {
        try Self.check(name)
        try KeyFile.checkFolder(path)
        var removed: [KeyList] = []
        for list in lists {
            if unlink(file(name, list)) == 0 {
                removed.append(list)
            } else if errno != ENOENT {
                throw .failed(path: file(name, list), reason: KeyFile.errorText)
            }
        }
        guard !removed.isEmpty else { throw .unknown(name) }
        return removed
    }

    /// Returns all listed keys, sorted by name.
    public func keys() throws(KeyError) -> [ListedKey] {
        try KeyFile.checkFolder(path)
        var keys: [String: ListedKey] = [:]
        for list in KeyList.allCases {
            for key in try read(list).keys {
                // The same name with another key, added by hand, is returned as a separate entry.
                let id = key.name + " " + key.publicKey.text
                let new = ListedKey(name: key.name, publicKey: key.publicKey, lists: [], statement: key.statement)
                keys[id, default: new].lists.append(list)
            }
        }
        return keys.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Reads the keys of a list, and returns the problems of files that could not be read.
    func read(_ list: KeyList) throws(KeyError) -> (keys: [KeyListEntry], problems: [KeyError]) {
        var keys: [KeyListEntry] = []
        var problems: [KeyError] = []
        for fileName in try KeyFile.names(in: folder(of: list)) where fileName.hasSuffix(".key") {
            let name = String(fileName.dropLast(4))
            do throws(KeyError) {
                try Self.check(name)
                let certificate = try KeyFile.read(file(name, list), isSecret: false)
                keys.append(
                    KeyListEntry(name: name, publicKey: certificate.publicKey, statement: KeyStatement(certificate))
                )
            } catch {
                problems.append(error)
            }
        }
        guard keys.count <= Self.maxKeys else { throw .tooMany(path: folder(of: list), limit: Self.maxKeys) }
        return (keys, problems)
    }

    /// Checks that a name is valid for a key.
    static func check(_ name: String) throws(KeyError) {
        guard name != "server" else { throw .taken(name, reason: "this name is reserved for the services") }
        func isPlain(_ byte: UInt8) -> Bool {
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        }
        guard let first = name.utf8.first, isPlain(first), name.utf8.count <= 64,
            name.utf8.allSatisfy({ isPlain($0) || ".-_@".utf8.contains($0) })
        else { throw .badName(name) }
    }
}

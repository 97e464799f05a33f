import Messaging
import PhotoModel
public import ArgumentParser
public import Hosting
import JSONValue

/// `safelight keys`
struct KeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "Manage the keys of clients on other machines.",
        discussion: """
            Services that are started with --listen accept TCP connections from clients whose keys are on a list: \
            requests, feed (receive all changes of the library), edits (publish edits), services (act on behalf of \
            other clients).

            A client needs its own NAME.key_secret and the services' server.key: \
            `safelight fetch --host H --server-key server.key --client-key NAME.key_secret`. The files are ZeroMQ \
            certificates, which pyzmq and czmq can load. Changes to the lists take effect without a restart.
            """,
        subcommands: [Server.self, Create.self, List.self, Admit.self, Revoke.self, Show.self],
        defaultSubcommand: List.self
    )

    /// The options that select the key folder and the output format.
    struct KeyFolderOptions: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "Key folder.",
                discussion: "Default: SAFELIGHT_KEYS, $XDG_CONFIG_HOME/safelight/keys or ~/.config/safelight/keys.",
                valueName: "folder"
            )
        )
        var keys: String?

        @Flag(help: "Print JSON.")
        var json = false

        func folder() throws -> KeyFolder { try KeyFolder(flag: keys) }
        var output: Output { Output(json: json) }
    }

    /// The option that selects lists.
    struct Lists: ParsableArguments {
        @Option(
            name: .customLong("domain"),
            help: ArgumentHelp("Lists, separated by commas: requests, feed, edits, services.", valueName: "lists")
        )
        var lists: [String] = []

        /// Returns the selected lists.
        ///
        /// - Parameter defaultLists: the lists if none is named
        func resolve(default defaultLists: [KeyList]) throws -> [KeyList] {
            let names = lists.flatMap { $0.split(separator: ",").map(String.init) }
            guard !names.isEmpty else { return defaultLists }
            let chosen = try names.map { name in
                guard let list = KeyList(rawValue: name) else {
                    throw CommandFailure.usage(
                        "\"\(name)\" is not a list; use " + KeyList.allCases.map(\.rawValue).joined(separator: ", ")
                    )
                }
                return list
            }
            return KeyList.allCases.filter(chosen.contains)
        }
    }

    /// `safelight keys server`
    struct Server: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create the services' own keys if there are none.")
        @OptionGroup var folderOptions: KeyFolderOptions

        func run() throws {
            let folder = try folderOptions.folder()
            let (pair, isNew) = try folder.makeServer()
            try folderOptions.output.result([
                "publicKey": .string(pair.publicKey.text), "file": .string(folder.serverFile), "made": .bool(isNew),
            ]) {
                [
                    isNew
                        ? "created the keys of the services; clients need \(folder.serverFile)"
                        : "the services already have keys"
                ]
            }
        }
    }

    /// `safelight keys create`
    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create the keys of a client and add it to lists, with what it may do.",
            discussion: """
                Give the output folder to the client: NAME.key_secret, NAME.key and server.key. Its access remains \
                valid until it is changed with `safelight grants`.
                """
        )
        @Argument(help: "Name of the client; its changes show it as key:NAME.") var name: String
        @OptionGroup var lists: Lists
        @Option(help: ArgumentHelp("Output folder. Default: made/NAME in the key folder.", valueName: "folder"))
        var output: String?
        @Option(
            help: """
                Access to the library: readWrite, addOnly, limited (to the assets of a list, see `safelight grants \
                limit`), ask (the client asks, and you decide), or owner (decides about others).
                """
        )
        var access: KeyStatement.Access = .readWrite
        @Option(help: "The changes that you are asked about, one decision each: never, destructive or always.")
        var consent: ConsentPolicy = .never
        @Option(help: "The purpose of the access; `safelight grants list` shows it.")
        var purpose: String = ""
        @Flag(help: "The same as --access limited.")
        var limited = false
        @Flag(help: "Do nothing if its secret key exists in the output folder, also if the key was revoked.")
        var ifMissing = false
        @OptionGroup var folderOptions: KeyFolderOptions

        func validate() throws {
            guard !limited || access == .readWrite || access == .limited else {
                throw ValidationError("--limited is access to a list of assets; leave out --access \(access.rawValue)")
            }
            guard purpose.utf8.count <= Grant.maxPurposeBytes, !purpose.contains(where: \.isNewline) else {
                throw ValidationError("--purpose must be one line of at most \(Grant.maxPurposeBytes) bytes")
            }
        }

        func run() throws {
            let folder = try folderOptions.folder()
            let output = output.map(ServicePaths.absolute) ?? folder.defaultOutput(of: name)
            if ifMissing, folder.hasSecret(of: name, in: output) {
                guard folder.isOfTheseServices(output) else {
                    throw CommandFailure(
                        message: "\(output.printable) has keys for other services; move it away, and try again",
                        name: "keys"
                    )
                }
                let isListed = try folder.keys().contains { $0.name == name }
                try folderOptions.output.result(["name": .string(name), "folder": .string(output), "made": false]) {
                    [
                        isListed
                            ? "\(name) already has keys in \(output.printable)"
                            : "\(name) has keys in \(output.printable), but is on no list; see `safelight keys admit`"
                    ]
                }
                return
            }
            let chosen = try lists.resolve(default: [.requests, .feed, .edits])
            let access = limited ? .limited : access
            let certificate = try folder.create(
                name,
                lists: chosen,
                output: output,
                statement: KeyStatement(access, consent: consent, purpose: purpose)
            )
            try folderOptions.output.result([
                "name": .string(name), "publicKey": .string(certificate.publicKey.text), "folder": .string(output),
                "lists": JSON(chosen.map(\.rawValue)), "access": .string(access.rawValue), "made": true,
            ]) { ["\(name) may connect to \(chosen.words); its keys are in \(output.printable)"] }
        }
    }

    /// `safelight keys list`
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the clients that may connect.")
        @OptionGroup var folderOptions: KeyFolderOptions

        func run() throws {
            let keys = try folderOptions.folder().keys()
            var table = TextTable([
                .init(title: "name"), .init(title: "lists"), .init(title: "access"), .init(title: "public key"),
            ])
            for key in keys {
                table.add([key.name, key.lists.words, key.statement.access.rawValue, key.publicKey.text])
            }
            try folderOptions.output.result(.array(keys.map(\.json))) {
                keys.isEmpty ? ["no client may connect"] : table.lines
            }
        }
    }

    /// `safelight keys admit`
    struct Admit: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Add the public key of a client to lists.")
        @Argument(help: "File with the public key, NAME.key.") var file: String
        @Option(help: "Name of the client. Default: the name of the file.") var name: String?
        @OptionGroup var lists: Lists
        @OptionGroup var folderOptions: KeyFolderOptions

        func run() throws {
            let certificate = try Certificate(readingPublic: file)
            let name = name ?? Self.title(file)
            let chosen = try lists.resolve(default: [.requests])
            try folderOptions.folder().admit(certificate, as: name, to: chosen)
            try folderOptions.output.result(["name": .string(name), "lists": JSON(chosen.map(\.rawValue))]) {
                ["\(name) may connect to \(chosen.words)"]
            }
        }

        /// Returns the name of a key file: `name` for `/a/b/name.key`.
        private static func title(_ path: String) -> String {
            let last = path.split(separator: "/").last.map(String.init) ?? path
            return last.hasSuffix(".key") ? String(last.dropLast(4)) : last
        }
    }

    /// `safelight keys revoke`
    struct Revoke: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a client's key from its lists.",
            discussion: """
                The requests and edits of the client are refused within two seconds. All subscribers of the live feed \
                are disconnected briefly; the others reconnect by themselves.
                """
        )
        @Argument(help: "Name of the client.") var name: String
        @OptionGroup var lists: Lists
        @OptionGroup var folderOptions: KeyFolderOptions

        func run() throws {
            let removed = try folderOptions.folder().revoke(name, from: lists.resolve(default: KeyList.allCases))
            try folderOptions.output.result(["name": .string(name), "lists": JSON(removed.map(\.rawValue))]) {
                ["\(name) may no longer connect to \(removed.words)"]
            }
        }
    }

    /// `safelight keys show`
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the certificate file of a public key, for copying.",
            discussion: "The name `server` means the services' own key."
        )
        @Argument(help: "Name of the client, or server.") var name: String
        @OptionGroup var folderOptions: KeyFolderOptions

        func run() throws {
            let certificate = try folderOptions.folder().publicCertificate(of: name)
            try folderOptions.output.result(["name": .string(name), "publicKey": .string(certificate.publicKey.text)]) {
                certificate.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
            }
        }
    }
}

extension KeyStatement.Access: ExpressibleByArgument {}

extension ListedKey {
    fileprivate var json: JSON {
        [
            "name": .string(name), "publicKey": .string(publicKey.text), "lists": JSON(lists.map(\.rawValue)),
            "access": .string(statement.access.rawValue), "consent": .string(statement.consent.rawValue),
            "purpose": .string(statement.purpose),
        ]
    }
}

extension [KeyList] {
    fileprivate var words: String { map(\.rawValue).joined(separator: ", ") }
}

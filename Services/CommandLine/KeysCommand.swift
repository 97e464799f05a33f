import ArgumentParser
import Hosting
import JSONValue
import Messaging

/// `safelight keys`
struct KeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "Make keys for clients on other machines, and say who may connect.",
        discussion: """
            Services listen on TCP when they are started with --listen, and then only to holders of keys on a list: \
            requests, feed (the whole library, live), edits (publishing them), and services (may act for others).

            A client takes its NAME.key_secret and the services' server.key: \
            `safelight fetch --host H --server-key server.key --client-key NAME.key_secret`. They are in ZeroMQ's \
            certificate format, which pyzmq and czmq load. Lists take effect without a restart.
            """,
        subcommands: [Server.self, Create.self, List.self, Admit.self, Revoke.self, Show.self],
        defaultSubcommand: List.self
    )

    /// Where the keys are.
    struct Place: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "The folder of keys.",
                discussion: "SAFELIGHT_KEYS, else $XDG_CONFIG_HOME/safelight/keys, else ~/.config/safelight/keys.",
                valueName: "folder"
            )
        )
        var keys: String?

        @Flag(help: "Write JSON.")
        var json = false

        func folder() throws -> KeyFolder { try KeyFolder(flag: keys) }
        var output: Output { Output(json: json) }
    }

    /// Which lists.
    struct Lists: ParsableArguments {
        @Option(
            name: .customLong("domain"),
            help: ArgumentHelp("requests, feed, edits, services; with commas between them.", valueName: "lists")
        )
        var lists: [String] = []

        /// - Parameter usual: where none is named
        func resolve(usual: [KeyList]) throws -> [KeyList] {
            let names = lists.flatMap { $0.split(separator: ",").map(String.init) }
            guard !names.isEmpty else { return usual }
            let chosen = try names.map { name in
                guard let list = KeyList(rawValue: name) else {
                    throw CommandFailure.usage(
                        "\"\(name)\" is no list: " + KeyList.allCases.map(\.rawValue).joined(separator: ", ")
                    )
                }
                return list
            }
            return KeyList.allCases.filter(chosen.contains)
        }
    }

    /// `safelight keys server`
    struct Server: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Make the services' own keys where there are none.")
        @OptionGroup var place: Place

        func run() throws {
            let folder = try place.folder()
            let (pair, isNew) = try folder.makeServer()
            try place.output.result([
                "publicKey": .string(pair.publicKey.text), "file": .string(folder.serverFile), "made": .bool(isNew),
            ]) {
                [
                    isNew
                        ? "made the services' keys; clients need \(folder.serverFile)"
                        : "the services have keys already"
                ]
            }
        }
    }

    /// `safelight keys create`
    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a client's keys, and put it on lists.",
            discussion: "Its owner takes the folder away: NAME.key_secret, NAME.key and server.key."
        )
        @Argument(help: "Its name, as changes will show it: key:NAME.") var name: String
        @OptionGroup var lists: Lists
        @Option(help: ArgumentHelp("Where to put the keys; else made/NAME in the folder of keys.", valueName: "folder"))
        var output: String?
        @Flag(help: "Do nothing where the name is on a list already and its secret is there.")
        var ifMissing = false
        @OptionGroup var place: Place

        func run() throws {
            let folder = try place.folder()
            let output = output.map(FilePaths.absolute) ?? folder.usualOutput(of: name)
            if ifMissing, try folder.keys().contains(where: { $0.name == name }), folder.hasSecret(of: name, in: output)
            {
                try place.output.result(["name": .string(name), "folder": .string(output), "made": false]) {
                    ["\(name) has keys already, in \(output.printable)"]
                }
                return
            }
            let chosen = try lists.resolve(usual: [.requests, .feed, .edits])
            let certificate = try folder.create(name, lists: chosen, output: output)
            try place.output.result([
                "name": .string(name), "publicKey": .string(certificate.publicKey.text), "folder": .string(output),
                "lists": JSON(chosen.map(\.rawValue)), "made": true,
            ]) { ["\(name) may connect to \(chosen.words); its keys are in \(output.printable)"] }
        }
    }

    /// `safelight keys list`
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show who may connect.")
        @OptionGroup var place: Place

        func run() throws {
            let keys = try place.folder().keys()
            var table = TextTable([.init(title: "name"), .init(title: "lists"), .init(title: "public key")])
            for key in keys { table.add([key.name, key.lists.words, key.publicKey.text]) }
            try place.output.result(.array(keys.map(\.json))) { keys.isEmpty ? ["nobody may connect"] : table.lines }
        }
    }

    /// `safelight keys admit`
    struct Admit: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Put somebody's public key on lists.")
        @Argument(help: "The public key, NAME.key.") var file: String
        @Option(help: "Its name; else the file's.") var name: String?
        @OptionGroup var lists: Lists
        @OptionGroup var place: Place

        func run() throws {
            let certificate = try Certificate(readingPublic: file)
            let name = name ?? FilePaths.title(file)
            let chosen = try lists.resolve(usual: [.requests])
            try place.folder().admit(certificate, as: name, to: chosen)
            try place.output.result(["name": .string(name), "lists": JSON(chosen.map(\.rawValue))]) {
                ["\(name) may connect to \(chosen.words)"]
            }
        }
    }

    /// `safelight keys revoke`
    struct Revoke: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take a key off its lists.",
            discussion: """
                Within two seconds its requests and edits are refused. Of the live feed everybody is disconnected for a \
                moment and comes back by itself, except this one.
                """
        )
        @Argument(help: "Its name.") var name: String
        @OptionGroup var lists: Lists
        @OptionGroup var place: Place

        func run() throws {
            let left = try place.folder().revoke(name, from: lists.resolve(usual: KeyList.allCases))
            try place.output.result(["name": .string(name), "lists": JSON(left.map(\.rawValue))]) {
                ["\(name) may no longer connect to \(left.words)"]
            }
        }
    }

    /// `safelight keys show`
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show a public key as the text of its file, for copying.",
            discussion: "`server` is the services' own."
        )
        @Argument(help: "Its name.") var name: String
        @OptionGroup var place: Place

        func run() throws {
            let certificate = try place.folder().publicCertificate(of: name)
            try place.output.result(["name": .string(name), "publicKey": .string(certificate.publicKey.text)]) {
                certificate.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
            }
        }
    }
}

extension ListedKey {
    fileprivate var json: JSON {
        ["name": .string(name), "publicKey": .string(publicKey.text), "lists": JSON(lists.map(\.rawValue))]
    }
}

extension [KeyList] {
    fileprivate var words: String { map(\.rawValue).joined(separator: ", ") }
}

private enum FilePaths {
    /// `/a/b/name.key` is `name`.
    static func title(_ path: String) -> String {
        let last = path.split(separator: "/").last.map(String.init) ?? path
        return last.hasSuffix(".key") ? String(last.dropLast(4)) : last
    }

    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let here = Environment["PWD"] else { return path }
        return "\(here)/\(path)"
    }
}

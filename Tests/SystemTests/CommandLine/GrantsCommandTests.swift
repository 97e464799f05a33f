import Contracts
import Foundation
import JSONValue
import PhotoClient
import TestSupport
import Testing

/// `safelight grants`, `log`, `keys create --access` and `watch --grants` against the real services.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct GrantsCommandTests {
    @Test(.spec("S-10", "S-12"))
    func `the owner decides by the command line, a hook is called, and decisions survive a restart`() throws {
        let network = try NetworkFixture()
        let services = network.services
        let seen = services.folder.file("seen")
        // It prints after it has written, because the test waits for the program's output.
        let hook = "cat >>\(seen) && echo received"
        let watch = try RunningProgram(
            "safelight",
            ["watch", "--grants", "--since", "start", "--exec", hook],
            environment: services.environment
        )
        func received() -> [JSON] {
            let text = (try? String(contentsOfFile: seen, encoding: .utf8)) ?? ""
            return text.split(separator: "\n").compactMap { try? JSON(parsing: String($0)) }
        }
        func safelight(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try services.safelight(arguments)
        }
        func asAnn(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try RunningProgram.run("safelight", arguments, environment: network.variables("ann"))
        }
        let limited = try safelight("keys", "create", "ann", "--limited", "--access", "addOnly")
        #expect(limited.status == 2)
        #expect(limited.errors.contains("leave out --access"))
        try #require(try safelight("keys", "create", "ann", "--access", "ask").status == 0)
        #expect(try safelight("keys", "list").output.contains("ask"))
        #expect(try safelight("grants").output.contains("notDetermined"))
        #expect(try asAnn("album", "list").errors.contains("session.open"))

        let approved = try safelight("grants", "approve", "ann", "--access", "readWrite", "--purpose", "album of ann")
        #expect(approved.status == 0, "\(approved.errors)")
        #expect(approved.output.contains("key:ann has readWrite access"))
        let created = try asAnn("album", "create", "By ann")
        #expect(created.status == 0, "\(created.errors)")
        #expect(try asAnn("grants", "list").errors.contains("owner of the library"))

        try services.restart(.catalog)
        try services.restart(.changeBroker)
        #expect(try safelight("grants", "list").output.contains("album of ann"))
        #expect(try safelight("grants", "revoke", "ann").output.contains("key:ann is denied"))
        #expect(try safelight("grants", "revoke", "ann").status == 1)
        #expect(try safelight("grants", "deny", "nobody").errors.contains("safelight keys list"))
        try services.restart(.catalog)
        let history = try safelight("grants", "history", "ann", "--json").output.split(separator: "\n")
            .map { try JSON(parsing: String($0)) }
        #expect(
            history.compactMap { $0["grants"]?.arrayValue?.first?["after"]?["status"]?.stringValue }
                == ["denied", "authorized"]
        )
        #expect(watch.wait { _ in received().count == 2 })
        #expect(
            received().compactMap { $0["grants"]?.arrayValue?.first?["after"]?["id"]?.stringValue } == [
                "key:ann", "key:ann",
            ]
        )
        watch.signal(SIGINT)
        #expect(watch.wait(seconds: 20) == 0, "\(watch.errorText)")

        // The log names the identity of each change.
        let log = try safelight("log", "--by", "ann", "--since", "2020-01-01")
        #expect(log.status == 0, "\(log.errors)")
        #expect(log.output.contains("By ann") && !log.output.contains("is denied"))
        #expect(try safelight("log", "--by", "ann", "--since", "2999-01-01").output == "")
        #expect(try safelight("log", "--topic", "grants").output.contains("key:ann is denied"))
        #expect(try safelight("log", "--since", "yesterday").status == 2)
        #expect(services.stop() == [])
    }

    @Test func `a new key under an old name does not inherit the old decision`() throws {
        let network = try NetworkFixture()
        func safelight(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try network.services.safelight(arguments)
        }
        func ask() throws -> (status: Int32?, output: String, errors: String) {
            try RunningProgram.run("safelight", ["album", "list"], environment: network.variables("ann"))
        }
        try #require(try safelight("keys", "create", "ann", "--access", "ask").status == 0)
        try #require(try safelight("grants", "approve", "ann").status == 0)
        #expect(try ask().status == 0)
        try #require(try safelight("keys", "revoke", "ann").status == 0)
        try FileManager.default.removeItem(atPath: network.keyFolder("ann"))
        try #require(try safelight("keys", "create", "ann", "--access", "ask").status == 0)
        #expect(try ask().errors.contains("session.open"))
        #expect(network.services.stop() == [])
    }

    @Test(.spec("T-41")) func `the owner limits a key to the result of a fetch, widens and narrows it`() throws {
        let network = try NetworkFixture()
        func safelight(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try network.services.safelight(arguments)
        }
        func seen() throws -> Int {
            let page = try RunningProgram.run("safelight", ["fetch", "--json"], environment: network.variables("ann"))
            try #require(page.status == 0, "\(page.errors)")
            return page.output.split(separator: "\n").count
        }
        let folder = network.services.folder
        for seed in 1...4 {
            try folder.write(TestImages.jpeg(width: 32, height: 24, seed: UInt64(seed)), to: "photos/\(seed).jpg")
        }
        try #require(try safelight("import", folder.file("photos")).status == 0)
        try #require(try safelight("keys", "create", "ann", "--limited").status == 0)
        #expect(try safelight("keys", "list").output.contains("limited"))
        #expect(try seen() == 0)
        let ids = try safelight("fetch", "--json").output.split(separator: "\n")
            .compactMap { try JSON(parsing: String($0))["id"]?.stringValue }
        try #require(ids.count == 4)
        try #require(try safelight("favorite", ids[0], ids[1]).status == 0)
        let limited = try safelight("grants", "limit", "ann", "--where", "isFavorite == YES")
        #expect(limited.output.contains("key:ann sees 2 assets"), "\(limited.errors)")
        #expect(try seen() == 2)
        #expect(try safelight("grants", "widen", "ann", ids[2]).output.contains("sees 3 assets"))
        #expect(try safelight("grants", "narrow", "ann", ids[0], ids[1]).output.contains("sees 1 asset\n"))
        #expect(try seen() == 1)
        #expect(try safelight("grants", "widen", "nobody", ids[2]).status == 1)
        // The list survives a restart, after which the service has another port.
        try network.services.restart(.catalog)
        #expect(try safelight("grants", "list", "--json").output.contains("\"assetCount\":1"))
        #expect(network.services.stop() == [])
    }

    @Test func `a key of an earlier version has all access, and a service knows nothing without the catalog`()
        async throws
    {
        let network = try NetworkFixture()
        let services = network.services
        try #require(try services.safelight(["keys", "create", "ann", "--domain", "requests"]).status == 0)
        // Key files had a name and nothing else.
        let file = network.keys.file("keys/clients/requests/ann.key")
        let old = try String(contentsOfFile: file, encoding: .utf8).split(
            separator: "\n",
            omittingEmptySubsequences: false
        )
        .filter { !$0.contains("access =") && !$0.contains("consent =") }
        try old.joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
        func run(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try RunningProgram.run("safelight", arguments, environment: network.variables("ann"))
        }
        #expect(try run("album", "create", "All access").status == 0)
        let grants = try services.safelight(["grants", "list"])
        #expect(grants.output.contains("key:ann") && grants.output.contains("authorized"))
        let library = try network.library("ann")
        services.killHard(.catalog)
        let error = await #expect(throws: RPCError.self) { try await library.changeBroker.ask(FeedHeadRequest()) }
        #expect(error?.name == "unavailable")
        #expect(error?.message.contains("which access key:ann has") == true)
        await library.close()
        #expect(services.stop() == [])
    }
}

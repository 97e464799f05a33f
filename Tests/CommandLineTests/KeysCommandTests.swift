import ArgumentParser
import Glibc
import Hosting
import TestSupport
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(1)))
struct KeysCommandTests {
    @Test func `a relative output folder is in the working directory, even if PWD names another one`() async throws {
        let folder = try TemporaryFolder("keys")
        await #expect(processExitsWith: .success) { [path = folder.path as String] in
            setenv("PWD", "/nowhere", 1)
            #expect(chdir(path) == 0)
            try KeysCommand.Server.parse(["--keys", path + "/keys"]).run()
            try KeysCommand.Create.parse(["ann", "--keys", path + "/keys", "--output", "ann"]).run()
        }
        #expect(access(folder.file("ann/ann.key_secret"), F_OK) == 0)
    }

    @Test func `keys create --if-missing does not admit a client that was revoked`() throws {
        let folder = try TemporaryFolder("keys")
        let keys = folder.file("keys")
        let create = ["ann", "--keys", keys, "--output", folder.file("ann"), "--if-missing"]
        try KeysCommand.Server.parse(["--keys", keys]).run()
        for _ in 0..<2 { try KeysCommand.Create.parse(create).run() }
        #expect(try KeyFolder(path: keys).keys().map(\.name) == ["ann"])
        try KeysCommand.Revoke.parse(["ann", "--keys", keys]).run()
        try KeysCommand.Create.parse(create).run()
        #expect(try KeyFolder(path: keys).keys().isEmpty)
    }

    @Test func `keys create --if-missing refuses a folder with keys for other services`() throws {
        let folder = try TemporaryFolder("keys")
        let (first, second, output) = (folder.file("first"), folder.file("second"), folder.file("ann"))
        for keys in [first, second] { try KeysCommand.Server.parse(["--keys", keys]).run() }
        func create(_ keys: String) throws {
            try KeysCommand.Create.parse(["ann", "--keys", keys, "--output", output, "--if-missing"]).run()
        }
        try create(first)
        try create(first)
        #expect(throws: CommandFailure.self) { try create(second) }
    }
}

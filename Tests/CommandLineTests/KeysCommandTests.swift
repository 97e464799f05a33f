import ArgumentParser
import Glibc
import TestSupport
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(1)))
struct KeysCommandTests {
    @Test func `a relative output folder is in the working directory, also if PWD is another one`() async throws {
        let folder = try TemporaryFolder("keys")
        await #expect(processExitsWith: .success) { [path = folder.path as String] in
            setenv("PWD", "/nowhere", 1)
            #expect(chdir(path) == 0)
            try KeysCommand.Server.parse(["--keys", path + "/keys"]).run()
            try KeysCommand.Create.parse(["ann", "--keys", path + "/keys", "--output", "ann"]).run()
        }
        #expect(access(folder.file("ann/ann.key_secret"), F_OK) == 0)
    }
}

import CProcess
import Glibc
import JSONValue
import Testing

@testable import Hosting

/// Tests of the operations that a confined worker is denied, in an unconfined process, where each must succeed.
@Suite(.timeLimit(.minutes(1)))
struct ConfinementTests {
    @Test func `operations denied to a confined worker succeed in an unconfined process`() {
        let folder = TemporaryFolder()
        let file = folder.write("key", "secret")
        var count = 0
        let attempts = UnsafeBufferPointer(start: safelight_attempts(&count), count: count)
        let possible = [
            "read a file", "write to a file", "create a file", "change a file's mode", "open a TCP socket",
            "open a datagram socket", "start a process", "send a signal by a descriptor", "create a memory file",
        ]
        for var attempt in attempts {
            let name = String(cString: attempt.name)
            guard possible.contains(name) else { continue }
            #expect(safelight_try(&attempt, file) == 0, "\(name)")
        }
        #expect(attempts.count > possible.count)
    }

    @Test func `confining a process with a second thread fails`() async {
        var confinement = safelight_confinement()
        // This process runs tests on several threads.
        let result = safelight_confine(&confinement)
        let problem = errno
        let isSanitized = safelight_is_sanitized() == 1
        #expect(result == (isSanitized ? 0 : -1))
        if !isSanitized { #expect(problem == EBUSY) }
    }

    @Test func `a worker's confinement report is decoded, and a missing one is nil`() {
        let full = Confinement(json: ["landlock": 4, "seccomp": true])
        #expect(full?.isComplete == true)
        #expect(full.map { "\($0)" } == "Landlock (version 4), seccomp")
        let none = Confinement(json: ["landlock": 0, "seccomp": true])
        #expect(none?.isComplete == false)
        #expect(none.map { "\($0)" }?.contains("no Landlock") == true)
        #expect(Confinement(json: nil) == nil)
    }
}

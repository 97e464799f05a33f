import Glibc
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(1)))
struct StopSignalsTests {
    // Each of these programs is ended by a signal long before the end of its pause.

    @Test func `a hangup that was ignored at the start stays ignored, and other signals are handled`() async {
        await #expect(processExitsWith: .exitCode(SIGTERM)) {
            signal(SIGHUP, SIG_IGN)
            let signals = StopSignals { _exit($0) }
            let action = signal(SIGHUP, SIG_IGN)
            #expect(unsafeBitCast(action, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self))
            kill(getpid(), SIGTERM)
            try await Task.sleep(for: .seconds(30))
            withExtendedLifetime(signals) {}
        }
    }

    @Test func `a hangup that was not ignored is handled`() async {
        await #expect(processExitsWith: .exitCode(SIGHUP)) {
            signal(SIGHUP, SIG_DFL)
            let signals = StopSignals { _exit($0) }
            kill(getpid(), SIGHUP)
            try await Task.sleep(for: .seconds(30))
            withExtendedLifetime(signals) {}
        }
    }

    @Test func `a command that a signal ends prints its progress`() async throws {
        let ended = await #expect(processExitsWith: .exitCode(128 + SIGINT), observing: [\.standardErrorContent]) {
            let signals = InterruptedWork.reportAtSignals()
            var progress = ProgressReporter(output: Output(json: false))
            progress.begin(total: 7247)
            progress.update(1000)
            kill(getpid(), SIGINT)
            try await Task.sleep(for: .seconds(30))
            withExtendedLifetime(signals) {}
        }
        let errors = String(decoding: ended?.standardErrorContent ?? [], as: UTF8.self)
        #expect(errors.contains("stopped after 1000 of 7247 assets"), "\(errors)")
    }
}

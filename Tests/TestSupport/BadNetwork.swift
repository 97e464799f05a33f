import Foundation

/// A bad network between a program and a server on this machine, with delays, a low bandwidth and cut connections.
public final class BadNetwork: Sendable {
    private let program: RunningProgram
    /// The port that a client connects to.
    public let port: Int

    /// - Parameters:
    ///   - server: the port of the server
    ///   - delay: seconds in each direction
    ///   - bytesPerSecond: the bandwidth of each connection and direction
    ///   - cuts: the fraction of connections that are cut, 0...1
    public init(before server: Int, delay: Double, bytesPerSecond: Int, cuts: Double, seed: UInt64) throws {
        program = try RunningProgram(
            try Needed.python(),
            ["-B", TestPaths.package + "/Tests/SystemTests/Rows/relay.py"]
                + ["\(server)", "\(delay)", "\(bytesPerSecond)", "\(cuts)", "\(seed)"]
        )
        guard program.waitForOutput("\n"), let word = program.outputText.split(whereSeparator: \.isWhitespace).last,
            let port = Int(word)
        else { throw FixtureError(description: "no relay: \(program.errorText)") }
        self.port = port
    }

    /// Stops the network. Returns the number of connections that were cut.
    public func end() -> Int {
        program.signal(SIGTERM)
        program.wait(seconds: 10)
        return program.outputText.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? 0
    }

    deinit { program.killHard() }
}

import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A follower of the feed that stores a hash of each record, for comparisons after many of them.
struct RecordHashes: Sendable {
    let received = AwaitableValue<[Int64: UInt64]>([:])
    let problems = AwaitableValue<[String]>([])

    /// Follows the feed until the task is cancelled.
    func run(_ library: PhotoLibrary, since token: ChangeToken) async throws {
        var last = token.sequence
        for try await event in library.changes(since: token) {
            switch event {
            case .caughtUp: continue
            case .expired: problems.withLock { $0.append("expired at \(last)") }
            case .change(let record):
                if record.sequence != last + 1 { problems.withLock { $0.append("\(last) -> \(record.sequence)") } }
                last = record.sequence
                received.withLock { $0[record.sequence] = Self.hash(record.bytes) }
            }
        }
    }

    /// Returns the FNV-1a hash.
    static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// Returns the hashes of the records in the catalog's change table, which is read in parts.
    static func table(_ services: SafelightFixture, after token: ChangeToken, to last: Int64) throws -> [Int64: UInt64]
    {
        var table: [Int64: UInt64] = [:]
        for start in stride(from: token.sequence, to: last, by: 2000) {
            let part = try FeedChecker.table(
                services,
                after: ChangeToken(library: token.library, sequence: start),
                to: min(last, start + 2000)
            )
            for (sequence, bytes) in part { table[sequence] = hash(bytes) }
        }
        return table
    }
}

/// `safelight watch` that is killed, stopped and started again; each time it continues after the last complete line.
struct KilledWatch: Sendable {
    let services: SafelightFixture
    let seed: UInt64
    let sequences = AwaitableValue<[Int64]>([])
    let kills = AwaitableValue(0)

    /// Follows the feed until the time `end`, and then until it has the change that `last` returns.
    func run(since token: ChangeToken, until end: ContinuousClock.Instant, last: () async throws -> Int64) async throws
    {
        var random = SeededRandom(seed: seed)
        var position = token
        while true {
            let arguments = ["watch", "--json", "--wait", "60", "--since", position.description]
            let watch = try RunningProgram("safelight", arguments, environment: services.environment)
            let isLast = ContinuousClock.now >= end
            if isLast {
                let sequence = try await last()
                try await waitUntil("a watch that was killed is complete") {
                    try (Self.tokens(watch.outputText).last ?? position).sequence >= sequence
                }
            } else {
                try? await Task.sleep(for: .seconds(Double.random(in: 1...8, using: &random)))
                if random.one(in: 3) {
                    watch.signal(SIGSTOP)
                    try? await Task.sleep(for: .seconds(Double.random(in: 0.5...4, using: &random)))
                    watch.signal(SIGCONT)
                }
                kills.withLock { $0 += 1 }
            }
            watch.killHard()
            let tokens = try Self.tokens(watch.outputText)
            sequences.withLock { $0 += tokens.map(\.sequence) }
            position = tokens.last ?? position
            if isLast { return }
        }
    }

    /// Returns the tokens of the complete lines.
    private static func tokens(_ output: String) throws -> [ChangeToken] {
        guard let end = output.lastIndex(of: "\n") else { return [] }
        return try output[..<end].split(separator: "\n").map { line in
            try #require(try JSON(parsing: String(line))["token"]?.stringValue.flatMap { ChangeToken($0) })
        }
    }
}

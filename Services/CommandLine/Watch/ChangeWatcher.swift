import ArgumentParser
import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Follows the feed until a stop is requested: prints each change or runs a program for it, and stores the last token.
struct ChangeWatcher: Sendable {
    /// The program to run; nil to print the changes.
    let program: ChangeHook?
    /// True if a failing program ends the watch with the program's status.
    let stopsAtFailure: Bool
    /// The number of changes after which the watch ends.
    let count: Int
    let output: Output

    func run(_ feed: ChangeFeed, in library: PhotoLibrary, tokens: TokenFile?) async throws {
        try await StopRequest.untilStopped(following: library.changeBroker) { stop in
            try await follow(feed, tokens, stop)
        }
    }

    private func follow(_ feed: ChangeFeed, _ tokens: TokenFile?, _ stop: StopRequest) async throws {
        var tokens = tokens
        var remaining = count
        for try await event in feed {
            // A separate task is not cancelled by Ctrl-C: the event is completed, so that the token matches the work.
            let task = Task {
                if let program {
                    try await perform(program, event)
                } else {
                    try handle(event)
                }
            }
            try await task.value
            try tokens?.write(event.token)
            if case .change = event { remaining -= 1 }
            if remaining == 0 || stop.isRequested { return }
        }
    }

    // MARK: Running

    private func perform(_ program: ChangeHook, _ event: FeedEvent) async throws {
        let end: ChangeHook.End
        switch event {
        case .change(let record): end = try await program.run(for: record)
        case .expired(let head, let oldest): end = try await program.runExpired(head: head, oldest: oldest)
        case .caughtUp: return
        }
        guard end != .done else { return }
        output.note("safelight: the command for change \(event.token.sequence) \(end.description)")
        if stopsAtFailure { throw ExitCode(end.status) }
    }

    // MARK: Printing

    private func handle(_ event: FeedEvent) throws {
        switch event {
        case .change(let record):
            var json = record.json.objectValue ?? [:]
            json["token"] = .string(record.token.description)
            try output.result(.object(json)) {
                [output.bold(ChangeFormatter.heading(record))] + ChangeFormatter.lines(record).map { "    \($0)" }
            }
        case .expired(let head, let oldest):
            if output.isJSON {
                try output.json([
                    "expired": ["token": .string(head.description), "oldest": .string(oldest.description)]
                ])
            } else {
                output.note(
                    "safelight: the history does not reach back to that token; continuing with new changes only, "
                        + "fetch everything else again (token_expired)"
                )
            }
        case .caughtUp: break
        }
    }
}

extension StopRequest {
    /// The interval at which a watch checks that it may still follow the library.
    private static let checkInterval = Duration.seconds(5)

    /// Runs endless work until Ctrl-C cancels it, or the change-broker refuses this client.
    ///
    /// The feed does not show a refusal: a subscriber whose key was revoked receives no more changes, as if there were
    /// none.
    ///
    /// - Throws: the error of the work, or `access_denied`
    static func untilStopped(
        following broker: ServiceClient,
        _ work: @escaping @Sendable (StopRequest) async throws -> Void
    ) async throws {
        let stop = StopRequest()
        let signals = StopSignals(stop)
        let working = Task { try await work(stop) }
        let stopping = Task {
            await stop.wait()
            working.cancel()
        }
        let checking = Task {
            let denial = await Self.denial(of: broker)
            if denial != nil { working.cancel() }
            return denial
        }
        defer {
            stopping.cancel()
            checking.cancel()
        }
        try await working.value
        withExtendedLifetime(signals) {}
        checking.cancel()
        if let denial = await checking.value { throw denial }
    }

    /// Sends requests to the change-broker at intervals. Returns its `access_denied`; nil once the task is cancelled.
    private static func denial(of broker: ServiceClient) async -> RPCError? {
        for await _ in TaskDelay.ticks(every: checkInterval) {
            do throws(RPCError) {
                _ = try await broker.ask(FeedHeadRequest(), deadline: checkInterval)
            } catch  where error.errorCode == .accessDenied {
                return error
            } catch {}
        }
        return nil
    }
}

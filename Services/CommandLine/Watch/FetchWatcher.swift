import ArgumentParser
import JSONValue
import PhotoClient
import PhotoModel

/// Follows the result of a fetch until a stop is requested: prints the list and each change of it, or runs a program.
struct FetchWatcher: Sendable {
    /// The program to run; nil to print.
    let program: ChangeHook?
    /// True if a failing program ends the watch with the program's status.
    let stopsAtFailure: Bool
    /// The number of changes of the list after which the watch ends.
    let count: Int
    let output: Output

    func run(_ list: LiveList, in library: PhotoLibrary) async throws {
        try await StopRequest.untilStopped(following: library.changeBroker) { stop in try await follow(list, stop) }
    }

    private func follow(_ list: LiveList, _ stop: StopRequest) async throws {
        var remaining = count
        for try await event in list {
            // A separate task is not cancelled by Ctrl-C: the event is completed.
            let task = Task {
                if let program {
                    try await perform(program, event)
                } else {
                    try output.result(Self.json(event)) { Self.lines(event) }
                }
            }
            try await task.value
            if case .changed = event { remaining -= 1 }
            if remaining == 0 || stop.isRequested { return }
        }
    }

    private func perform(_ program: ChangeHook, _ event: LiveListEvent) async throws {
        let end = try await program.run(
            Self.json(event),
            [
                "SAFELIGHT_SEQUENCE": "\(event.token.sequence)", "SAFELIGHT_TOKEN": event.token.description,
            ]
        )
        guard end != .done else { return }
        output.note("safelight: the command for the list at \(event.token.sequence) \(end.description)")
        if stopsAtFailure { throw ExitCode(end.status) }
    }

    /// Returns the event as JSON: the whole list as `ids`, or a change of it as `details`.
    static func json(_ event: LiveListEvent) -> JSON {
        var json: JSONObject = ["token": .string(event.token.description), "count": JSON(event.ids.count)]
        switch event {
        case .list(let ids, _): json["ids"] = JSON(ids.map(\.text))
        case .changed(let details, _, _): json["details"] = details.json
        }
        return .object(json)
    }

    /// Returns one line for each asset: its index, or its old and new index.
    static func lines(_ event: LiveListEvent) -> [String] {
        let heading = "#\(event.token.sequence): \(event.ids.count) in the list"
        switch event {
        case .list(let ids, _): return [heading] + ids.enumerated().map { "    = \($0.offset) \($0.element)" }
        case .changed(let details, _, _):
            let moved = Set(details.moved.map(\.id))
            return [heading] + details.removed.map { "    - \($0.index) \($0.id)" }
                + details.inserted.map { "    + \($0.index) \($0.id)" }
                + details.moved.map { "    > \($0.before) to \($0.after) \($0.id)" }
                + details.changed.filter { !moved.contains($0.id) }.map { "    * \($0.after) \($0.id)" }
        }
    }
}

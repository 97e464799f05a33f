import Contracts
import JSONValue
import PhotoClient
import SystemPackage

/// The progress of a command that processes many items: a bar on a terminal, and a line for each result.
struct ProgressReporter {
    private let output: Output
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var meter = ProgressMeter(total: 0)
    private var lastDrawn = Duration.zero
    private(set) var failed = 0
    /// The number of items that are finished, also those that failed.
    var done: Int { meter.done }
    var total: Int { meter.total }

    private static let timePerDrawing = Duration.milliseconds(100)

    init(output: Output) {
        self.output = output
        start = clock.now
    }

    mutating func begin(total: Int, _ noun: String = "asset") {
        meter = ProgressMeter(total: total)
        InterruptedWork.begin(total: total, noun, output)
    }

    /// Counts one item.
    mutating func step(isDone: Bool) {
        if !isDone { failed += 1 }
        meter.step(at: clock.now - start)
        InterruptedWork.update(done - failed)
        draw()
    }

    /// Advances to a number of finished items, for work that is done by a service.
    mutating func update(_ done: Int) {
        while meter.done < min(done, meter.total) { meter.step(at: clock.now - start) }
        InterruptedWork.update(meter.done)
        draw()
    }

    private mutating func draw() {
        guard output.showsProgress, meter.elapsed - lastDrawn >= Self.timePerDrawing || meter.done == meter.total else {
            return
        }
        lastDrawn = meter.elapsed
        try? Output.write("\r\u{1B}[K" + meter.bar(width: 30), to: .standardError)
    }

    /// Prints a result. After a write error the work goes on; ``requireWritten()`` reports it.
    mutating func write(_ json: JSON, _ line: String) {
        clear()
        do { try output.result(json) { [line] } } catch { writeError = writeError ?? error }
    }

    private var writeError: (any Error)?

    /// Throws the first error of writing a result.
    func requireWritten() throws { if let writeError { throw writeError } }

    func report(_ failure: CommandFailure) {
        clear()
        output.report(failure)
    }

    func clear() {
        if output.showsProgress { try? Output.write("\r\u{1B}[K", to: .standardError) }
    }
}

// MARK: - Operations of a service

extension ServiceClient {
    /// Sends a long-running request and draws its progress; Ctrl-C cancels it.
    func askWithProgress<R: Request>(_ request: R, output: Output) async throws -> R.Result {
        var result: R.Result?
        for try await event in stream(request, credit: 1 << 16) {
            switch event {
            case .notification(_, let params, _):
                guard output.showsProgress, let done = params["done"]?.intValue, let total = params["total"]?.intValue
                else { continue }
                try? Output.write("\r\u{1B}[K\(done)/\(total)", to: .standardError)
            case .response(let response): result = response.result
            }
        }
        if output.showsProgress { try? Output.write("\r\u{1B}[K", to: .standardError) }
        guard let result else {
            throw CommandFailure(
                message: "the connection to the catalog was lost before the operation was complete",
                name: "connection_lost"
            )
        }
        return result
    }
}

import Basics
import Hosting
import SystemPackage

/// Runs the four services: starts them in order, restarts them, and stops them in reverse order.
final class ServiceSupervisor: Sendable {
    /// Requests that all services stop.
    let stop = StopRequest()
    private let programs: FilePath
    private let variables: [String: String]
    private let output: Output
    /// True for each service that has become ready; fulfilled when that is known.
    private let starts: [ServiceName: Promise<Bool>]

    init(programs: FilePath, variables: [String: String], output: Output) {
        self.programs = programs
        self.variables = variables
        self.output = output
        starts = Dictionary(uniqueKeysWithValues: UpCommand.order.map { ($0, Promise()) })
    }

    /// Runs the services until a stop is requested.
    ///
    /// - Parameter whenUp: called once, when all services accept requests
    /// - Returns: false if a service could not be started
    func run(whenUp: () -> Void) async -> Bool {
        let runners = UpCommand.order.map { name in
            ServiceRunner(name, executable: programs.appending(name.rawValue), variables: variables) { runner, event in
                self.handle(event, of: runner)
            }
        }
        return await withTaskGroup(of: ServiceName?.self) { group in
            var isUp = true
            var started: [ServiceRunner] = []
            for runner in runners where isUp && !stop.isRequested {
                started.append(runner)
                group.addTask {
                    await runner.run()
                    return runner.name
                }
                isUp = await waitUntilReady(runner)
            }
            if isUp && !stop.isRequested {
                whenUp()
                await stop.wait()
            }
            let wasStopped = stop.isRequested
            // The services stop in reverse order, each after the previous one has ended.
            var ended: Set<ServiceName> = []
            for runner in started.reversed() {
                runner.stop.request()
                while !ended.contains(runner.name), let name = await group.next() {
                    if let name { ended.insert(name) }
                }
            }
            return isUp || wasStopped
        }
    }

    /// Returns true when the service is ready; false if it cannot be started or a stop is requested.
    private func waitUntilReady(_ runner: ServiceRunner) async -> Bool {
        let watch = Task {
            await stop.wait()
            if stop.isRequested { starts[runner.name]?.fulfill(false) }
        }
        defer { watch.cancel() }
        return await starts[runner.name]?.value() ?? false
    }

    private func handle(_ event: ServiceRunner.Event, of runner: ServiceRunner) {
        let name = runner.name.rawValue
        switch event {
        case .ready:
            starts[runner.name]?.fulfill(true)
        case .log(let line):
            output.note("\(name) | \(line.printable)")
        case .exited(let end, let delay):
            let restart = delay == .zero ? "restarting it" : "restarting it in \(delay)"
            output.note("safelight: the \(name) \(end); \(restart)")
        case .abandoned(let end):
            output.note("safelight: the \(name) \(end) repeatedly; see its log above (not_started)")
            starts[runner.name]?.fulfill(false)
        }
    }
}

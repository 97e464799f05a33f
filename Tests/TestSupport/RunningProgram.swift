public import Foundation
import Synchronization

/// One of the real executables, started by a test.
public final class RunningProgram: Sendable {
    public let name: String
    public let processIdentifier: Int32
    private let process: Mutex<Process>
    private let exited: DispatchSemaphore
    private let output: Mutex<Data>
    private let errors: Mutex<Data>
    private let drains = DispatchGroup()
    private let arrived = DispatchSemaphore(value: 0)

    /// Starts a program; `arguments` and `environment` are added to the test's own environment.
    public init(_ name: String, _ arguments: [String] = [], environment: [String: String] = [:], input: Data? = nil)
        throws
    {
        self.name = name
        let path = name.contains("/") ? name : TestPlace.executables + "/" + name
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let outputPipe = Pipe()
        let errorPipe = Pipe()
        process.standardOutput = outputPipe
        process.standardError = errorPipe
        let exited = DispatchSemaphore(value: 0)
        let arrived = self.arrived
        process.terminationHandler = { _ in
            exited.signal()
            arrived.signal()
        }
        if let input {
            let inputPipe = Pipe()
            process.standardInput = inputPipe
            try process.run()
            inputPipe.fileHandleForWriting.write(input)
            try inputPipe.fileHandleForWriting.close()
        } else {
            process.standardInput = FileHandle.nullDevice
            try process.run()
        }
        self.processIdentifier = process.processIdentifier
        self.process = Mutex(process)
        self.exited = exited
        self.output = Mutex(Data())
        self.errors = Mutex(Data())
        drain(outputPipe) { program, data in program.output.withLock { $0.append(data) } }
        drain(errorPipe) { program, data in
            program.errors.withLock { kept in
                kept.append(data)
                if kept.count > 4 << 20 { kept = Data(kept.suffix(2 << 20)) }
            }
        }
    }

    private func drain(_ pipe: Pipe, _ take: @escaping @Sendable (RunningProgram, Data) -> Void) {
        let handle = pipe.fileHandleForReading
        let drains = self.drains
        drains.enter()
        Thread.detachNewThread { [weak self] in
            while true {
                let data = handle.availableData
                guard !data.isEmpty else { break }
                guard let self else { continue }
                take(self, data)
                self.arrived.signal()
            }
            self?.arrived.signal()
            drains.leave()
        }
    }

    /// Waits until the standard output holds a text; false when the program ends or the time is over before.
    public func waitForOutput(_ text: String, seconds: Double = 30) -> Bool {
        wait(seconds: seconds) { $0.outputText.contains(text) }
    }

    /// Waits until what the program has said fulfils a condition; false when it ends or the time is over before.
    public func wait(seconds: Double = 30, until condition: (RunningProgram) -> Bool) -> Bool {
        let end = DispatchTime.now() + seconds
        while !condition(self) {
            if arrived.wait(timeout: end) == .timedOut { return false }
            if !isRunning, drains.wait(timeout: end) == .success { return condition(self) }
        }
        return true
    }

    public var isRunning: Bool { process.withLock { $0.isRunning } }
    public var outputText: String { output.withLock { String(decoding: $0, as: UTF8.self) } }
    public var errorText: String { errors.withLock { String(decoding: $0, as: UTF8.self) } }

    public func signal(_ number: Int32) { kill(processIdentifier, number) }

    /// Waits for the end; kills it and returns nil when it takes longer.
    @discardableResult
    public func wait(seconds: Double = 60) -> Int32? {
        if exited.wait(timeout: .now() + seconds) == .timedOut {
            signal(SIGKILL)
            exited.wait()
            exited.signal()
            return nil
        }
        exited.signal()
        return process.withLock { $0.terminationStatus }
    }

    /// `kill -9`, and the process is gone when this returns.
    public func killHard() {
        signal(SIGKILL)
        wait()
    }

    deinit {
        if isRunning { kill(processIdentifier, SIGKILL) }
    }

    /// Runs a program to its end and returns what it said.
    public static func run(
        _ name: String,
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        input: Data? = nil,
        seconds: Double = 120
    ) throws -> (status: Int32?, output: String, errors: String) {
        let program = try RunningProgram(name, arguments, environment: environment, input: input)
        let status = program.wait(seconds: seconds)
        program.drains.wait()
        return (status, program.outputText, program.errorText)
    }
}

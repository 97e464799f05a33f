import Foundation
import JSONValue

/// An error that ends a benchmark.
struct BenchmarkError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// A child process of a benchmark that takes commands and responds in lines. Used by one task at a time.
final class Child {
    let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var buffer = Data()
    private let endSignal: Int32

    /// Starts a hidden subcommand of this program, or another program.
    ///
    /// - Parameter endSignal: the signal that ends the child. A foreign program inherits blocked signals and needs
    ///   SIGKILL.
    init(_ arguments: [String], program: String? = nil, endSignal: Int32 = SIGTERM) throws {
        self.endSignal = endSignal
        process.executableURL = URL(fileURLWithPath: program ?? BenchmarkPaths.ownProgram)
        process.arguments = arguments
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    deinit {
        try? input.fileHandleForWriting.close()
        if process.isRunning { kill(process.processIdentifier, endSignal) }
        process.waitUntilExit()
    }

    func send(_ line: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
    }

    /// Returns the next line. A new thread waits for it.
    func nextLine() async throws -> String {
        while true {
            if let end = buffer.firstIndex(of: 0x0A) {
                let line = String(decoding: buffer[buffer.startIndex..<end], as: UTF8.self)
                buffer = Data(buffer[buffer.index(after: end)...])
                return line
            }
            let handle = output.fileHandleForReading
            let data = await runBlocking { handle.availableData }
            guard !data.isEmpty else { throw BenchmarkError("a peer ended before it answered") }
            buffer.append(data)
        }
    }

    /// Reads the next line.
    ///
    /// - Throws: an error if it is another one than expected
    func expect(_ expected: String) async throws {
        let found = try await nextLine()
        guard found == expected else { throw BenchmarkError("a peer answered \"\(found)\" instead of \"\(expected)\"") }
    }
}

/// Runs blocking work on a new thread, so that it does not block a thread of tasks.
func runBlocking<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: work()) }
    }
}

/// Runs blocking work that can throw on a new thread, so that it does not block a thread of tasks.
func runBlocking<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    let result = await runBlocking { Result { try work() } }
    return try result.get()
}

/// Runs a program until it ends.
///
/// - Returns: its output
/// - Throws: an error if it cannot be started, or ends with a status that is not allowed
@discardableResult
func runProgram(_ path: String, _ arguments: [String], allowed: Set<Int32> = [0]) async throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    let errors = Pipe()
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let (handle, errorHandle) = (output.fileHandleForReading, errors.fileHandleForReading)
    async let errorOutput = runBlocking { errorHandle.readDataToEndOfFile() }
    let data = await runBlocking { handle.readDataToEndOfFile() }
    let errorText = String(decoding: await errorOutput.suffix(500), as: UTF8.self)
    process.waitUntilExit()
    guard allowed.contains(process.terminationStatus) else {
        throw BenchmarkError("\(path) ended with status \(process.terminationStatus): \(errorText)")
    }
    return String(decoding: data, as: UTF8.self)
}

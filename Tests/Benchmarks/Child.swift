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
    private let ending: Int32

    /// Starts one of the hidden subcommands, or another program.
    ///
    /// - Parameter ending: the signal that ends the child. A foreign program inherits blocked signals and needs
    ///   SIGKILL.
    init(_ arguments: [String], program: String? = nil, ending: Int32 = SIGTERM) throws {
        self.ending = ending
        process.executableURL = URL(fileURLWithPath: program ?? BenchmarkPaths.ownProgram)
        process.arguments = arguments
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    deinit {
        try? input.fileHandleForWriting.close()
        if process.isRunning { kill(process.processIdentifier, ending) }
        process.waitUntilExit()
    }

    func send(_ line: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
    }

    /// Reads the next line, blocking a thread of its own.
    func line() async throws -> String {
        while true {
            if let end = buffer.firstIndex(of: 0x0A) {
                let line = String(decoding: buffer[buffer.startIndex..<end], as: UTF8.self)
                buffer = Data(buffer[buffer.index(after: end)...])
                return line
            }
            let handle = output.fileHandleForReading
            let data = await blocking { handle.availableData }
            guard !data.isEmpty else { throw BenchmarkError("a peer ended before it answered") }
            buffer.append(data)
        }
    }

    func expect(_ wanted: String) async throws {
        let found = try await line()
        guard found == wanted else { throw BenchmarkError("a peer said \"\(found)\" instead of \"\(wanted)\"") }
    }
}

/// Runs work that would block a task on a thread of its own.
func blocking<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: work()) }
    }
}

/// Runs throwing work that would block a task on a thread of its own.
func blocking<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    let result = await blocking { Result { try work() } }
    return try result.get()
}

/// Runs a program until it ends.
///
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
    async let complaints = blocking { errorHandle.readDataToEndOfFile() }
    let data = await blocking { handle.readDataToEndOfFile() }
    let words = String(decoding: await complaints.suffix(500), as: UTF8.self)
    process.waitUntilExit()
    guard allowed.contains(process.terminationStatus) else {
        throw BenchmarkError("\(path) ended with status \(process.terminationStatus): \(words)")
    }
    return String(decoding: data, as: UTF8.self)
}

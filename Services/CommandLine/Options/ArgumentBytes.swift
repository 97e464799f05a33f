import Glibc

/// The bytes of the program's arguments.
///
/// An argument is changed when it becomes text if it is not UTF-8, as the name of a file may be.
struct ArgumentBytes {
    /// The arguments that are not UTF-8, by their text, in their order.
    private var changed: [String: [[CChar]]] = [:]

    /// Collects the arguments of this process.
    init() {
        var arguments: [[CChar]] = []
        for argument in UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)) {
            guard let argument else { continue }
            arguments.append(Array(UnsafeBufferPointer(start: argument, count: strlen(argument) + 1)))
        }
        self.init(arguments)
    }

    /// - Parameter arguments: each with its zero at the end
    init(_ arguments: [[CChar]]) {
        for argument in arguments {
            let bytes = argument.dropLast().map { UInt8(bitPattern: $0) }
            guard String(validating: bytes, as: UTF8.self) == nil else { continue }
            changed[String(decoding: bytes, as: UTF8.self), default: []].append(argument)
        }
    }

    /// Returns the bytes of the next argument with this text, with a zero at the end; nil if they are those of the text.
    mutating func next(_ text: String) -> [CChar]? {
        guard let arguments = changed[text], !arguments.isEmpty else { return nil }
        return changed[text]?.removeFirst()
    }
}

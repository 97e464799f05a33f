import ArgumentParser
import Glibc

/// The bytes of the program's arguments.
///
/// An argument that is not UTF-8, as the name of a file may be, is changed when it is converted to text.
struct ArgumentBytes {
    /// The arguments that are not UTF-8, by their text, in their order.
    private var changed: [String: [[CChar]]] = [:]

    /// Collects the arguments of this process, without the name of the program, which may be in any folder.
    init() {
        var arguments: [[CChar]] = []
        let all = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))
        for argument in all.dropFirst() {
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

    /// The text of an argument that is not UTF-8 and was not returned yet; nil if there is none.
    var changedText: String? { changed.filter { !$0.value.isEmpty }.keys.sorted().first }

    /// Refuses arguments that are not UTF-8 for all commands but `import`: they would use the changed text, and could
    /// write to another file than the one named.
    ///
    /// - Parameter arguments: those of the program, without its name
    func check(_ arguments: [String]) throws(CommandFailure) {
        guard let changedText, arguments.first != ImportCommand.configuration.commandName else { return }
        throw CommandFailure.usage(
            "\"\(changedText.prefix(200))\" is not UTF-8; only import takes the names of such files, for all other "
                + "commands use another name, or a link to the file"
        )
    }

    /// Returns the bytes of the next argument with this text, with a zero at the end; nil if the argument is
    /// UTF-8.
    mutating func next(_ text: String) -> [CChar]? {
        guard let arguments = changed[text], !arguments.isEmpty else { return nil }
        return changed[text]?.removeFirst()
    }
}

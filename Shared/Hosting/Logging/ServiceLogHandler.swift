import Glibc
import Logging

/// Writes each event as one line, in the form of ``ServiceLog``.
struct ServiceLogHandler: LogHandler {
    let label: String
    let now: @Sendable () -> Int64
    let write: @Sendable ([UInt8]) -> Void
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
        if let given = event.metadata { all.merge(given) { $1 } }
        if let error = event.error { all["error"] = "\(error)" }
        var line = "\(ServiceLog.format(now())) \(event.level.rawValue) \(ServiceLog.escape(label)) "
        line += ServiceLog.escape(event.message.description)
        for (key, value) in all.sorted(by: { $0.key < $1.key }) {
            line += " \(ServiceLog.escape(key))=\(quoted(value.description))"
        }
        var bytes = Array(line.utf8)
        if bytes.count >= ServiceLog.maxLineBytes {
            var end = ServiceLog.maxLineBytes - 4
            // Do not cut a UTF-8 sequence.
            while end > 0, bytes[end] & 0b1100_0000 == 0b1000_0000 { end -= 1 }
            bytes = bytes[..<end] + Array("...".utf8)
        }
        write(bytes + [UInt8(ascii: "\n")])
    }

    private func quoted(_ text: String) -> String {
        let escaped = ServiceLog.escape(text)
        guard escaped.isEmpty || escaped.contains(where: { $0 == " " || $0 == "\"" || $0 == "=" }) else {
            return escaped
        }
        var result = "\""
        for character in escaped { result += character == "\"" ? "\\\"" : String(character) }
        return result + "\""
    }
}

import Glibc

/// The environment variables of this process.
public enum Environment {
    /// The value of a variable; nil if it is unset or empty.
    public static subscript(name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// Sets a setting from its flag, else from its environment variable; without both it keeps its value.
    ///
    /// - Throws: ``HostingError/badSetting(source:reason:)`` if the variable has another kind of value
    public static func set<Value: LosslessStringConvertible>(
        _ setting: inout Value,
        _ flag: Value?,
        _ variable: String,
        kind: String = "whole number",
        environment: (String) -> String? = { Environment[$0] }
    ) throws(HostingError) {
        if let flag { return setting = flag }
        guard let text = environment(variable) else { return }
        guard let value = Value(text) else {
            throw .badSetting(source: variable, reason: "\(text) is not a \(kind)")
        }
        setting = value
    }

    /// Returns a number from a flag, else from an environment variable; nil without both.
    ///
    /// - Throws: ``HostingError/badSetting(source:reason:)`` if it is not a number in the range
    static func number(
        _ flag: Int?,
        _ name: String,
        _ variable: String,
        in range: ClosedRange<Int>,
        environment: (String) -> String?
    ) throws(HostingError) -> Int? {
        guard let text = flag.map(String.init) ?? environment(variable) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw .badSetting(
                source: flag == nil ? variable : name,
                reason: "\(text) is not a number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return number
    }

    static var current: [(name: String, value: String)] {
        var variables: [(name: String, value: String)] = []
        var next = environ
        while let entry = next.pointee {
            let text = String(cString: entry)
            if let mark = text.firstIndex(of: "=") {
                variables.append((String(text[..<mark]), String(text[text.index(after: mark)...])))
            }
            next += 1
        }
        return variables
    }
}

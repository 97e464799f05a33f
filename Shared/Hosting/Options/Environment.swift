import Glibc

/// The environment variables of this process.
public enum Environment {
    /// The value of a variable; nil if it is unset or empty.
    public static subscript(name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
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

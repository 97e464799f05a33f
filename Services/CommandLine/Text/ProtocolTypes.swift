import Contracts
import JSONValue

/// The object types that schemas name, collected while their phrases are written.
struct ProtocolTypes {
    /// The types in the order in which they were found; no two have the same name.
    private(set) var found: [(name: String, schema: JSON)] = []
    /// The name of each type by its schema without the description, which depends on where the type is used.
    private var names: [String: String] = [:]

    /// Returns a short description of the values of a schema.
    mutating func phrase(_ schema: JSON) -> String {
        if let name = schema["$ref"]?.stringValue?.split(separator: "/").last {
            return "`\(name)` of `rpc.discover`"
        }
        if let choices = (schema["oneOf"] ?? schema["anyOf"])?.arrayValue {
            return choices.map { phrase($0) }.joined(separator: " or ")
        }
        if let constant = schema["const"] { return "`\(constant.text)`" }
        if let values = schema["enum"]?.arrayValue {
            return "one of " + values.map { "`\($0.stringValue ?? $0.text)`" }.joined(separator: ", ")
        }
        switch schema["type"]?.stringValue {
        case "array":
            let bound = schema["maxItems"]?.intValue.map { ", at most \($0)" } ?? ""
            return "array of \(phrase(schema["items"] ?? [:]))\(bound)"
        case "object":
            guard schema["title"] != nil, schema["properties"]?.objectValue?.isEmpty == false else { return "object" }
            let name = name(of: schema)
            let anchor = name.lowercased().filter { $0.isLetter || $0.isNumber || $0 == "-" || $0 == " " }
            return "[`\(name)`](#type-\(anchor.replacing(" ", with: "-")))"
        case "string": return text(schema)
        case "integer", "number": return number(schema)
        case let type?: return type
        case nil: return "any"
        }
    }

    private mutating func name(of schema: JSON) -> String {
        var members = schema.objectValue ?? [:]
        members["description"] = nil
        let key = JSON.object(members).text
        if let name = names[key] { return name }
        let title = schema["title"]?.stringValue ?? "Object"
        var name = title
        var number = 1
        while found.contains(where: { $0.name == name }) {
            number += 1
            name = "\(title) \(number)"
        }
        names[key] = name
        found.append((name, schema))
        return name
    }

    private func text(_ schema: JSON) -> String {
        if let pattern = schema["pattern"]?.stringValue {
            if let kinds = pattern.firstMatch(of: /^\^\[([a-z]+)\]\[0-9a-hjkmnp-tv-z\]\{26\}\$$/) {
                return "identifier (" + kinds.1.map { "`\($0)…`" }.joined(separator: ", ") + ")"
            }
            return "string like `\(pattern.replacing("|", with: "\\|"))`"
        }
        guard let longest = schema["maxLength"]?.intValue else { return "string" }
        return "string, at most \(longest) bytes"
    }

    private func number(_ schema: JSON) -> String {
        let type = schema["type"]?.stringValue ?? "number"
        let low = schema["minimum"].flatMap { $0.intValue == .min ? nil : $0.text }
        let high = schema["maximum"].flatMap { $0.intValue == .max ? nil : $0.text }
        return switch (low, high) {
        case (let low?, let high?): "\(type), \(low) to \(high)"
        case (let low?, nil): "\(type), at least \(low)"
        case (nil, let high?): "\(type), at most \(high)"
        case (nil, nil): type
        }
    }
}

import Contracts
import Hosting
import JSONValue

/// Writes metrics in Prometheus' text exposition format, version 0.0.4.
///
/// The metric `requests.bytesIn` of the catalog is `safelight_requests_bytes_in{service="catalog"}`. All metrics are
/// untyped: a service's metrics do not distinguish counters from gauges.
enum PrometheusText {
    /// Groups of counters, such as one per error: the name of a member becomes the value of this label.
    private static let labelled = ["errors": "error", "decodeErrors": "error", "refused": "identity"]

    /// One value.
    private struct Sample {
        let name: String
        let labels: [(name: String, value: String)]
        let value: String

        var line: String {
            let labels = labels.map { "\($0.name)=\"\(PrometheusText.escaped($0.value))\"" }.joined(separator: ",")
            return "\(name){\(labels)} \(value)"
        }
    }

    /// Returns the text for the states of services. The values of one metric follow each other, as the format demands.
    static func lines(_ states: [StatusCommand.State]) -> [String] {
        var samples: [Sample] = []
        for state in states {
            var labels = [("service", state.service.rawValue)]
            // Several instances of a service differ by their addresses.
            if states.count(where: { $0.service == state.service }) > 1 { labels.append(("address", state.address)) }
            samples.append(Sample(name: "safelight_up", labels: labels, value: state.health == nil ? "0" : "1"))
            samples.append(Sample(name: "safelight_healthy", labels: labels, value: state.isHealthy ? "1" : "0"))
            if let health = state.health {
                samples.append(Sample(name: "safelight_sequence", labels: labels, value: "\(health.sequence)"))
            }
            add(state.metrics, "safelight", labels, to: &samples)
        }
        var order: [String] = []
        var groups: [String: [Sample]] = [:]
        for sample in samples {
            if groups[sample.name] == nil { order.append(sample.name) }
            groups[sample.name, default: []].append(sample)
        }
        return order.flatMap { name in ["# TYPE \(name) untyped"] + (groups[name] ?? []).map(\.line) }
    }

    private static func add(
        _ group: JSONObject,
        _ prefix: String,
        _ labels: [(String, String)],
        label: String? = nil,
        to samples: inout [Sample]
    ) {
        for (name, value) in group.members {
            let path = label == nil ? "\(prefix)_\(snakeCase(name))" : prefix
            let all = labels + (label.map { [($0, name)] } ?? [])
            switch value {
            case .object(let members):
                add(members, path, all, label: labelled[name], to: &samples)
            case .int, .double:
                samples.append(Sample(name: path, labels: all, value: value.text))
            case .bool(let flag):
                samples.append(Sample(name: path, labels: all, value: flag ? "1" : "0"))
            default: break
            }
        }
    }

    /// Returns "commit_microseconds_p50" for "commitMicrosecondsP50". Other characters than letters and digits become
    /// underscores.
    static func snakeCase(_ name: String) -> String {
        var words = ""
        var wasLower = false
        for character in name {
            guard character.isASCII, character.isLetter || character.isNumber else {
                words.append("_")
                wasLower = false
                continue
            }
            if character.isUppercase, wasLower { words.append("_") }
            words += character.lowercased()
            wasLower = character.isLowercase || character.isNumber
        }
        return words
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}

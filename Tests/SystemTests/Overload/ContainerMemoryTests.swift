import Foundation
import TestSupport
import Testing

/// The memory limits of the services in `compose/`.
@Suite(.timeLimit(.minutes(3)))
struct ContainerMemoryTests {
    private static let containers = [
        (file: "compose.yaml", name: "catalog", program: "catalog"),
        (file: "compose.yaml", name: "thumbnailer", program: "thumbnailer"),
        (file: "compose.yaml", name: "editor", program: "editor"),
        (file: "compose.yaml", name: "change-broker", program: "change-broker"),
        (file: "compose.cluster.yaml", name: "catalog1", program: "catalog"),
        (file: "compose.cluster.yaml", name: "thumbnailer1", program: "thumbnailer"),
        (file: "compose.cluster.yaml", name: "editor1", program: "editor"),
        (file: "compose.cluster.yaml", name: "feed1", program: "change-broker"),
    ]

    /// Returns the variables of a container that set memory limits.
    private func variables(of name: String, in file: String) throws -> [String: String] {
        let text = try String(contentsOfFile: "\(TestPaths.package)/compose/\(file)", encoding: .utf8)
        let start = try #require(text.range(of: "\n  \(name):"), "\(file): \(name)")
        let lines = text[start.upperBound...].split(separator: "\n").dropFirst()
        let container = lines.prefix { $0.hasPrefix("    ") }.joined(separator: "\n")
        let pattern = /(SAFELIGHT_(?:SERVICE_MEMORY_MIB|REQUEST_MEMORY_MIB|MAX_FETCH_BYTES)): ([0-9]+)/
        return Dictionary(uniqueKeysWithValues: container.matches(of: pattern).map { (String($0.1), String($0.2)) })
    }

    @Test func `no service in a container warns that its limits of memory allow too much`() throws {
        let services = try SafelightFixture("container-memory")
        func warns(_ program: String, _ variables: [String: String]) throws -> Bool {
            let environment = services.environment.merging(variables) { $1 }
            let check = try RunningProgram.run(program, ["--check"], environment: environment)
            #expect(check.status == 0, "\(check.errors)")
            return check.errors.contains("the service ends before its limits of memory take effect")
        }
        for (file, name, program) in Self.containers {
            let limits = try variables(of: name, in: file)
            #expect(limits["SAFELIGHT_SERVICE_MEMORY_MIB"] != nil, "\(file): \(name)")
            #expect(try !warns(program, limits), "\(file): \(name) \(limits)")
        }
        #expect(try warns("change-broker", ["SAFELIGHT_SERVICE_MEMORY_MIB": "768"]))
    }
}

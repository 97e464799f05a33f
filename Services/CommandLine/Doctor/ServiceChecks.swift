import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// What the running services say of themselves.
struct ServiceChecks {
    let library: PhotoLibrary
    /// Whether stored bytes to which nothing refers are removed now.
    var collects = false

    /// What one service answered; nil where nobody did.
    private struct Answer: Sendable {
        let service: ServiceName
        var health: Health.Result?
        var version: Int64?
        /// The figures `connections`.
        var connections: JSON?
        var problem = ""
    }

    /// - Returns: the findings, and whether anybody answered
    func findings() async -> (findings: [Finding], isRunning: Bool) {
        let answers = await withTaskGroup(of: Answer.self) { group in
            for service in ServiceName.allCases {
                group.addTask { await ask(service) }
            }
            var answers: [Answer] = []
            for await answer in group { answers.append(answer) }
            return answers
        }
        guard answers.contains(where: { $0.health != nil }) else {
            return ([.ok("services", "none is running: looked at from outside")], false)
        }
        var findings: [Finding] = []
        for name in ServiceName.allCases {
            guard let answer = answers.first(where: { $0.service == name }) else { continue }
            findings.append(judge(answer))
        }
        if let finding = await quarantine() { findings.append(finding) }
        findings.append(await collectable())
        return (findings, true)
    }

    private func ask(_ service: ServiceName) async -> Answer {
        let client = service.client(of: library)
        var answer = Answer(service: service)
        do throws(RPCError) {
            answer.health = try await client.health(deadline: .seconds(2))
            let document = try await client.ask(Discover(), deadline: .seconds(5)).result.members
            answer.version = document["info"]?["x-protocol"]?.intValue
            answer.connections = try await client.figures(deadline: .seconds(5))["connections"]
        } catch {
            answer.problem = error.message
        }
        return answer
    }

    private func judge(_ answer: Answer) -> Finding {
        let name = answer.service.rawValue
        let address = answer.service.client(of: library).address
        guard let health = answer.health else {
            return .problem(name, "does not answer at \(address)", "start it; its log says why it ended")
        }
        guard health.isHealthy else {
            return .problem(name, health.problems.joined(separator: "; "), "see its log")
        }
        guard answer.version == 1 else {
            return .problem(
                name,
                "speaks protocol \(answer.version.map(String.init) ?? "unknown"), and this program 1",
                "bring both to the same version"
            )
        }
        guard health.version == ServiceVersion.current else {
            return .warning(
                name,
                "is version \(health.version), and this program \(ServiceVersion.current)",
                "restart the services after an upgrade"
            )
        }
        if let most = answer.connections?["mostLocal"]?.intValue, most < Self.fewConnections {
            return .warning(
                name,
                "serves at most \(most) connections, because it may open so few files",
                "raise the hard limit of open files (ulimit -Hn, LimitNOFILE=) and restart it"
            )
        }
        return .ok(name, "answers at \(address), version \(health.version), sequence \(health.sequence)")
    }

    private static let fewConnections: Int64 = 512

    private func quarantine() async -> Finding? {
        guard let page = try? await library.catalog.ask(ListQuarantine(count: 1)).result else { return nil }
        return Self.quarantine(page.count)
    }

    private func collectable() async -> Finding {
        do throws(RPCError) {
            let request = CollectLibrary(isDryRun: !collects)
            let found = try await library.catalog.ask(request, deadline: .seconds(300)).result
            return ProgramChecks.collectable(Int64(found.count), found.bytes, isCollected: collects)
        } catch {
            return .warning("collector", "it cannot be asked: \(error.message)", "run this as the catalog's own user")
        }
    }

    static func quarantine(_ count: Int) -> Finding {
        guard count > 0 else { return .ok("quarantine", "nothing is set aside") }
        return .warning(
            "quarantine",
            "\(Quantities.count(count, "file")) set aside because workers came to harm over them",
            "`safelight quarantine list` says why; after an upgrade `safelight quarantine lift --all`"
        )
    }
}

import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// The checks of the running services: health, version, connection limits, quarantine and unreferenced files.
struct ServiceChecks {
    let library: PhotoLibrary
    /// True if unreferenced files are removed now.
    var collects = false

    /// The state of one instance of a service; its optional members are nil if it did not respond.
    private struct InstanceState: Sendable {
        let service: ServiceName
        let address: EndpointAddress
        var health: Health.Result?
        var version: Int64?
        /// The member `connections` of the service's metrics.
        var connections: JSON?
        /// The members `store` and `reread` of the catalog's metrics.
        var store: JSON?
        var reread: JSON?
        /// The reason why the thumbnailer cannot write images to its cache.
        var cacheProblem: String?
    }

    /// Queries all services.
    ///
    /// - Returns: the findings, and whether any service responded
    func findings() async -> (findings: [Finding], isRunning: Bool) {
        let clients = ServiceName.allCases.flatMap { name in name.client(of: library).instances.map { (name, $0) } }
        let states = await withTaskGroup(of: InstanceState.self) { group in
            for (service, client) in clients {
                group.addTask { await ask(service, client) }
            }
            var states: [InstanceState] = []
            for await state in group { states.append(state) }
            return states
        }
        guard states.contains(where: { $0.health != nil }) else {
            return ([.ok("services", "not running; the library was checked directly")], false)
        }
        var findings: [Finding] = []
        for (name, client) in clients {
            guard let state = states.first(where: { $0.service == name && $0.address == client.address }) else {
                continue
            }
            findings.append(judge(state))
        }
        if let finding = states.lazy.compactMap(\.store).first.flatMap(Self.store) { findings.append(finding) }
        if let finding = states.lazy.compactMap(\.reread).first.flatMap(Self.reread) { findings.append(finding) }
        for problem in states.compactMap(\.cacheProblem) {
            let advice = "free space on its disk, or repair the folder; until then images are rendered for each request"
            findings.append(.warning("cache", "the thumbnailer cannot write images to its cache: \(problem)", advice))
        }
        if let finding = await quarantine() { findings.append(finding) }
        if let finding = await storage() { findings.append(finding) }
        findings.append(await collectable())
        return (findings, true)
    }

    /// Returns the state of the object store; nil without one.
    private func storage() async -> Finding? {
        guard let status = try? await library.catalog.ask(StorageStatus(), deadline: .seconds(5)).result,
            let store = status.store
        else { return nil }
        if let problem = status.problem {
            return .problem("object store", "\(store): \(problem): \(status.message ?? "")", "safelight storage status")
        }
        let waiting = status.waitingCount > 0 ? ", \(status.waitingCount) waiting" : ""
        return .ok("object store", "\(store): \(QuantityFormatter.count(status.remoteCount, "file"))\(waiting)")
    }

    private func ask(_ service: ServiceName, _ client: ServiceClient) async -> InstanceState {
        var state = InstanceState(service: service, address: client.address)
        do throws(RPCError) {
            state.health = try await client.health(deadline: .seconds(2))
            let document = try await client.ask(Discover(), deadline: .seconds(5)).result.members
            state.version = document["info"]?["x-protocol"]?.intValue
            let metrics = try await client.metrics(deadline: .seconds(5))
            (state.connections, state.reread) = (metrics["connections"], metrics["reread"])
            state.store = metrics["store"]
            state.cacheProblem = metrics["cache"]?["diskProblem"]?.stringValue
        } catch {
            // The members that were not read stay nil.
        }
        return state
    }

    private func judge(_ state: InstanceState) -> Finding {
        let name = state.service.rawValue
        guard let health = state.health else {
            return .problem(name, "does not respond at \(state.address)", "start it; its log says why it ended")
        }
        guard health.isHealthy else {
            return .problem(name, health.problems.joined(separator: "; "), "check its log")
        }
        guard state.version == 1 else {
            return .problem(
                name,
                "uses protocol version \(state.version.map(String.init) ?? "unknown"), but this program uses 1",
                "install the same version of both"
            )
        }
        guard health.version == ServiceVersion.current else {
            return .warning(
                name,
                "is version \(health.version), but this program is \(ServiceVersion.current)",
                "restart the services after an upgrade"
            )
        }
        if let limit = state.connections?["mostLocal"]?.intValue, limit < Self.minConnections {
            return .warning(
                name,
                "accepts at most \(limit) connections because of its limit of open files",
                "raise the hard limit of open files (ulimit -Hn, LimitNOFILE=) and restart it"
            )
        }
        return .ok(name, "responds at \(state.address), version \(health.version), sequence \(health.sequence)")
    }

    private static let minConnections: Int64 = 512

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
            return .warning("collector", "the request failed: \(error.message)", "run this as the catalog's own user")
        }
    }

    /// Returns the finding about the durability of acknowledged changes on PostgreSQL; nil for SQLite, which syncs
    /// every commit.
    static func store(_ metrics: JSON) -> Finding? {
        guard metrics["engine"]?.stringValue == "postgresql" else { return nil }
        let mode = metrics["synchronousCommit"]?.stringValue ?? "?"
        let standbys = metrics["synchronousStandbys"]?.stringValue ?? ""
        let server = metrics["server"]?.stringValue ?? ""
        let isOff = { (setting: String) in metrics[setting]?.boolValue == false }
        let wrong =
            (mode == "off" ? ["synchronous_commit=off"] : []) + (isOff("fsync") ? ["fsync=off"] : [])
            + (isOff("fullPageWrites") ? ["full_page_writes=off"] : [])
        guard wrong.isEmpty else {
            return .problem(
                "database",
                "\(server): acknowledged changes can be lost in a power failure (\(wrong.joined(separator: ", ")))",
                "set them to on in postgresql.conf, and reload the server"
            )
        }
        let role = metrics["role"]?.stringValue.map { $0 + "; " } ?? ""
        let replicas = standbys.isEmpty || mode == "local" ? "" : " and its replicas \(standbys)"
        return .ok("database", "\(server): \(role)acknowledged changes are on the disks of the server\(replicas)")
    }

    /// Returns the progress of reading the files of earlier versions again; nil if there are none.
    static func reread(_ metrics: JSON) -> Finding? {
        guard let files = metrics["files"]?.intValue, let done = metrics["done"]?.intValue, files > 0 else {
            return nil
        }
        guard done < files else { return .ok("metadata", "all files of earlier versions were read again") }
        return .ok("metadata", "\(done) of \(files) files of earlier versions were read again; the catalog continues")
    }

    static func quarantine(_ count: Int) -> Finding {
        guard count > 0 else { return .ok("quarantine", "nothing is quarantined") }
        return .warning(
            "quarantine",
            "\(QuantityFormatter.count(count, "file")) quarantined because workers crashed or hung while opening them",
            "see `safelight quarantine list` for the reasons; after an upgrade run `safelight quarantine lift --all`"
        )
    }
}

import ArgumentParser
import Basics
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import SystemPackage

/// `safelight doctor`
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check the installation, the library and the services, and suggest fixes.",
        discussion: """
            Checks software versions and the image policy, folders, disk space, clock, locks, the stored files against \
            the database, quarantined files, and the services. If the services do not run, the library is checked \
            directly. Nothing is changed, except that --deep marks damaged files (a later import of the same file then \
            replaces them) and --collect removes unreferenced files.

            Exit status: 0 no findings, 1 warnings, 2 problems.
            """
    )

    @OptionGroup var library: LibraryOptions
    @OptionGroup var store: StoreOptions

    @Flag(help: "Read every file in the library and verify its content.")
    var deep = false

    @Flag(help: "Remove unreferenced files now instead of after an hour; the catalog must be running.")
    var collect = false

    @OptionGroup var client: ClientOptions

    func run() async throws {
        let output = Output(json: client.json)
        // Without a run folder no service can be reached; `MachineChecks` reports that.
        let addresses = try? client.serviceEndpoints()
        let running = try await runningCatalog(addresses)
        let folder = try running.folder ?? library.resolve()
        let givenServer = try store.resolve()
        let server = givenServer ?? running.server
        // The catalog has its database on a server whose address it does not report.
        let isServerUnknown = givenServer == nil && running.hidesServer
        let endpoints = try client.endpoints.resolve()
        let now = WallClock.nowMicroseconds()

        var findings = [LibraryVersions.judge("libzmq", MessagingContext.libraryVersion)]
        var machine = MachineChecks(library: folder, run: endpoints.folder, keys: try? KeyFolder(flag: nil), now: now)
        machine.hasDatabase = server == nil && !isServerUnknown
        machine.lostLibrary = (try? NewLibraryOptions.parse([]))?.history(at: folder)
        findings += machine.findings()
        let programs = ProgramChecks(
            programs: try ServicePaths.programFolder(with: UpCommand.order),
            library: folder,
            server: server,
            isServerUnknown: isServerUnknown,
            isDeep: deep,
            now: now
        )
        findings += await programs.findings { done, total in
            if output.showsProgress { try? Output.write("\r\u{1B}[K\(done) of \(total) files", to: .standardError) }
        }
        if output.showsProgress, deep { try? Output.write("\r\u{1B}[K", to: .standardError) }
        if let addresses {
            var serviceFindings = try await services(addresses)
            // The running catalog knows the unreferenced files more exactly than the check of the library folder.
            if serviceFindings.contains(where: { $0.subject == "collector" }) {
                findings.removeAll { $0.subject == "collector" }
            }
            // The services run, but their sockets were deleted.
            if findings.contains(where: { $0.subject == "socket" }) {
                serviceFindings.removeAll { $0.subject == "services" }
            }
            Self.chooseDatabase(&findings, &serviceFindings)
            findings += serviceFindings
        }
        if collect, !findings.contains(where: { $0.subject == "catalog" }) {
            findings.append(.warning("collector", "the catalog is not running", "start it; only it removes files"))
        }
        try report(Self.withoutDuplicates(findings), output)
    }

    private func connect(_ endpoints: ServiceEndpoints) throws -> PhotoLibrary {
        try PhotoLibrary(
            endpoints: endpoints,
            client: "safelight",
            logger: Logger(label: "safelight", factory: { _ in SwiftLogNoOpLogHandler() })
        )
    }

    /// Keeps one of two findings about the database. That of the catalog also has its role, but may be outdated: the
    /// settings of the server may have changed since the catalog connected.
    private static func chooseDatabase(_ findings: inout [Finding], _ serviceFindings: inout [Finding]) {
        let isDatabase: (Finding) -> Bool = { $0.subject == "database" }
        guard let ours = findings.first(where: isDatabase), let theirs = serviceFindings.first(where: isDatabase)
        else { return }
        if ours.level == .ok, theirs.level == .ok {
            findings.removeAll(where: isDatabase)
        } else {
            serviceFindings.removeAll(where: isDatabase)
        }
    }

    /// Returns the library of the catalog that runs on this machine, unless one was named, and the address of its
    /// database on PostgreSQL. The catalog hides an address that has a password.
    private func runningCatalog(
        _ endpoints: ServiceEndpoints?
    ) async throws -> (folder: String?, server: String?, hidesServer: Bool) {
        guard let endpoints, endpoints.catalog.path != nil else { return (nil, nil, false) }
        let connection = try connect(endpoints)
        let metrics = try? await connection.catalog.metrics(deadline: .seconds(2))
        await connection.close()
        let folder = metrics?["library"]?["folder"]?.stringValue
        let address = metrics?["store"]?["server"]?.stringValue
        let hidesServer = address?.contains("…") == true
        let server = hidesServer ? nil : address
        guard library.isNamed else { return (folder, server, hidesServer) }
        guard try folder == library.resolve() else { return (nil, nil, false) }
        return (nil, server, hidesServer)
    }

    private func services(_ endpoints: ServiceEndpoints) async throws -> [Finding] {
        let library = try connect(endpoints)
        let findings = await ServiceChecks(library: library, collects: collect).findings().findings
        await library.close()
        return findings
    }

    /// Returns the findings without duplicates: two checks may have the same finding.
    private static func withoutDuplicates(_ findings: [Finding]) -> [Finding] {
        var unique: [Finding] = []
        for finding in findings where !unique.contains(finding) { unique.append(finding) }
        return unique
    }

    private func report(_ findings: [Finding], _ output: Output) throws {
        let worst = findings.map(\.level).max() ?? .ok
        try output.result([
            "level": .string(worst.rawValue), "findings": .array(findings.map(\.json)),
        ]) {
            findings.flatMap(\.lines) + [
                "",
                Finding.Level.allCases.reversed().map { level in
                    let count = findings.count { $0.level == level }
                    return level == .ok ? "\(count) ok" : QuantityFormatter.count(count, level.rawValue)
                }.joined(separator: ", "),
            ]
        }
        if worst != .ok { throw ExitCode(worst.status) }
    }
}

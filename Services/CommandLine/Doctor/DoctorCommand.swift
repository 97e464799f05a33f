import ArgumentParser
import Glibc
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
        abstract: "Look for what is wrong, or soon will be, and say what to do.",
        discussion: """
            Libraries and their policy, folders, disk, clock, locks, the store against the database, what was set aside, \
            and the services where they run; where they do not, it looks at the library from outside. It changes nothing, \
            but that --deep marks damaged files, so that importing good ones replaces them, and what --collect removes.

            Exit status: 0 all is well, 1 there are warnings, 2 there are problems.
            """
    )

    @OptionGroup var library: LibraryOptions

    @Flag(help: "Read every file of the library and check its bytes.")
    var deep = false

    @Flag(help: "Remove stored bytes to which nothing refers now, and not after an hour; the catalog must run.")
    var collect = false

    @OptionGroup var client: ClientOptions

    func run() async throws {
        let output = Output(json: client.json)
        let folder = try library.resolve()
        let endpoints = try client.endpoints.resolve()
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        let now = Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000

        var findings = [LibraryVersions.judge("libzmq", MessagingContext.libraryVersion)]
        let machine = MachineChecks(library: folder, run: endpoints.folder, keys: try? KeyFolder(flag: nil), now: now)
        findings += machine.findings()
        let programs = ProgramChecks(
            programs: try Places.programFolder(with: UpCommand.order),
            library: folder,
            isDeep: deep,
            now: now
        )
        findings += await programs.findings { done, total in
            if output.showsProgress { try? Output.write("\r\u{1B}[K\(done) of \(total) files", to: .standardError) }
        }
        if output.showsProgress, deep { try? Output.write("\r\u{1B}[K", to: .standardError) }
        // Without a run folder nobody can be called; the finding above says so.
        if let addresses = try? client.serviceEndpoints() {
            let answers = try await services(addresses)
            // The running catalog knows better what is needed than a look from outside.
            if answers.contains(where: { $0.subject == "collector" }) {
                findings.removeAll { $0.subject == "collector" }
            }
            findings += answers
        }
        if collect, !findings.contains(where: { $0.subject == "catalog" }) {
            findings.append(.warning("collector", "the catalog does not run", "start it; it is the one that collects"))
        }
        try tell(Self.merged(findings), output)
    }

    private func services(_ endpoints: ServiceEndpoints) async throws -> [Finding] {
        let library = try PhotoLibrary(
            endpoints: endpoints,
            client: "safelight",
            logger: Logger(label: "safelight", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        let findings = await ServiceChecks(library: library, collects: collect).findings().findings
        await library.close()
        return findings
    }

    /// What two ways of looking both found is said once.
    private static func merged(_ findings: [Finding]) -> [Finding] {
        var seen: [Finding] = []
        for finding in findings where !seen.contains(finding) { seen.append(finding) }
        return seen
    }

    private func tell(_ findings: [Finding], _ output: Output) throws {
        let worst = findings.map(\.level).max() ?? .ok
        try output.result([
            "level": .string(worst.rawValue), "findings": .array(findings.map(\.json)),
        ]) {
            findings.flatMap(\.lines) + [
                "",
                Finding.Level.allCases.reversed().map { level in
                    "\(findings.count { $0.level == level }) \(level.rawValue)"
                }.joined(separator: ", "),
            ]
        }
        if worst != .ok { throw ExitCode(worst.status) }
    }
}

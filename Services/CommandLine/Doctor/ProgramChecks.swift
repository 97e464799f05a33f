import Hosting
import JSONValue
import Subprocess
import SystemPackage

/// The checks that run the services' executables: libraries, policy and confinement in a worker, and the stored files
/// against the database.
struct ProgramChecks {
    let programs: FilePath
    let library: String
    /// The address of the database on PostgreSQL; nil for a file in the library's folder.
    let server: String?
    /// True if the database is on a server whose address is not known: the files are not compared with it.
    var isServerUnknown = false
    let isDeep: Bool
    /// Microseconds since 1970.
    let now: Int64

    /// Runs the checks.
    ///
    /// - Parameter progress: called with the number of files read and their total, in a deep check
    func findings(progress: @escaping @Sendable (_ done: Int64, _ total: Int64) -> Void) async -> [Finding] {
        guard !isServerUnknown else {
            let text = "the files are not compared with the database, whose address has a password and is hidden"
            return await checkWorker() + [.warning("store", text, "name the address with --store or SAFELIGHT_STORE")]
        }
        return await checkWorker() + checkStore(progress)
    }

    // MARK: Libraries

    private func checkWorker() async -> [Finding] {
        guard
            let json = await run(
                "thumbnailer",
                ["about", "--log", "error", "--attempt", "\(library)/library.sqlite"],
                { _, _ in }
            )
        else {
            return [
                .problem("workers", "no worker can be started", "run `thumbnailer --check` for the reason")
            ]
        }
        var findings = ["imagemagick", "libheif", "libavformat"].map { name in
            LibraryVersions.judge(name, json[name]?.stringValue ?? "")
        }
        let open = json["open"]?.arrayValue?.compactMap(\.stringValue) ?? []
        if open.isEmpty {
            findings.append(.ok("policy", "workers can open image formats only"))
        } else {
            findings.append(
                .problem(
                    "policy",
                    "ImageMagick in a worker opens \(open.joined(separator: ", "))",
                    "do not import anything; unset MAGICK_CONFIGURE_PATH and restart the services"
                )
            )
        }
        if let side = json["largestSide"]?.intValue, side < 65_500 {
            findings.append(
                .warning(
                    "policy",
                    "images with a side of more than \(side) pixels cannot be opened",
                    "let workers write the small policy file that ImageMagick reads (TMPDIR)"
                )
            )
        }
        return findings + [Self.confinement(json)]
    }

    /// Returns the finding about the confinement: whether a worker that a malicious file controls can access more than
    /// its job.
    static func confinement(_ json: JSON) -> Finding {
        let attempts = json["attempts"]?.objectValue?.members ?? []
        if let open = attempts.first(where: { $0.value == "succeeded" })?.name {
            return .problem(
                "workers",
                "a worker can \(open) despite its confinement",
                "run a kernel with Landlock (5.13 or newer, with `landlock` in its `lsm=` list)"
            )
        }
        let inForce = json["confinement"]?["inForce"]?.stringValue ?? "nothing"
        guard json["confinement"]?["isComplete"]?.boolValue == true else {
            return .warning(
                "workers",
                "their confinement is incomplete: \(inForce)",
                "run a kernel with Landlock (5.13 or newer, with `landlock` in its `lsm=` list) and seccomp"
            )
        }
        return .ok("workers", "they are confined to their jobs: \(inForce)")
    }

    // MARK: The library

    private func checkStore(_ progress: @escaping @Sendable (Int64, Int64) -> Void) async -> [Finding] {
        let arguments = ["examine", "--library", library] + (isDeep ? ["--deep"] : [])
        guard let json = await run("catalog", arguments, progress) else {
            let command = "catalog examine --library …\(server == nil ? "" : " --store …")"
            return [.problem("database", "it cannot be checked", "run `\(command)` for the reason")]
        }
        return Self.judge(json, now: now)
    }

    static func judge(_ json: JSON, now: Int64) -> [Finding] {
        let version = json["store"]?["version"]?.stringValue ?? ""
        let server = json["store"].flatMap(ServiceChecks.store)
        var findings = [
            server == nil ? LibraryVersions.judge("sqlite", version) : .ok("postgresql", "version \(version)"),
            LibraryVersions.judge("exiv2", json["exiv2"]?.stringValue ?? ""),
        ]
        let problems = json["problems"]?.arrayValue?.compactMap(\.stringValue) ?? []
        guard problems.isEmpty else {
            let text = problems.joined(separator: "; ")
            return findings + [.problem("database", "it is damaged: \(text)", "stop the services and restore a backup")]
        }
        if let server { findings.append(server) }
        func add(_ member: String, _ description: String, _ advice: String) {
            guard let sample = json[member], let count = sample["count"]?.intValue, count > 0 else { return }
            let first = sample["first"]?.arrayValue?.compactMap(\.stringValue) ?? []
            let names = first.joined(separator: ", ") + (count > first.count ? ", …" : "")
            findings.append(
                Finding(
                    level: .problem,
                    subject: "store",
                    text: "\(count) \(description): \(names)",
                    advice: advice
                )
            )
        }
        let before = findings.count
        add("missing", "files of assets are missing", "restore them from a backup, into resources/")
        add(
            "references",
            "referenced files are missing or changed",
            "mount their disks, and find moved ones with `safelight rescan`; no backup of the library has them"
        )
        add("wrongSize", "files of assets have the wrong size", "restore them from a backup")
        add("damaged", "files of assets have changed content", "check the disk; restore them from a backup")
        if findings.count == before {
            let files = QuantityFormatter.count(Int(clamping: json["resources"]?.intValue ?? 0), "file")
            let bytes = QuantityFormatter.bytes(json["bytes"]?.intValue ?? 0)
            let remote = json["remote"]?.intValue ?? 0
            let remoteText = remote > 0 ? ", \(remote) in the object store only" : ""
            let isDeep = json["isDeep"]?.boolValue == true
            findings.append(
                .ok(
                    "store",
                    "\(files), \(bytes), none missing\(remoteText)\(isDeep ? ", and their content is unchanged" : "")"
                )
            )
        }
        if let count = json["orphans"]?["count"]?.intValue, count > 0 {
            findings.append(collectable(count, json["orphanBytes"]?.intValue ?? 0, isCollected: false))
        }
        if let newest = json["newestRecord"]?.intValue {
            if newest > now + 60_000_000 {
                findings.append(
                    .warning(
                        "clock",
                        "the newest change has a date in the future: \(QuantityFormatter.time(newest))",
                        "set the clock; until that date, new changes are dated out of order"
                    )
                )
            } else {
                findings.append(.ok("history", "the newest change is from \(QuantityFormatter.time(newest))"))
            }
        }
        findings.append(ServiceChecks.quarantine(Int(clamping: json["quarantined"]?.intValue ?? 0)))
        return findings
    }

    /// Returns the finding about stored files to which no record refers.
    static func collectable(_ count: Int64, _ bytes: Int64, isCollected: Bool) -> Finding {
        let files = "\(QuantityFormatter.count(Int(clamping: count), "file")), \(QuantityFormatter.bytes(bytes))"
        guard !isCollected else { return .ok("collector", "\(files) collected") }
        guard count > 0 else { return .ok("collector", "there are no unreferenced files") }
        return .ok(
            "collector",
            "\(files) unreferenced: the catalog removes them later, `safelight doctor --collect` removes them now"
        )
    }

    // MARK: Programs

    /// Runs a program and returns the last JSON line of its output, or nil if it fails. Progress lines before it are
    /// passed to `progress`.
    private func run(
        _ name: String,
        _ arguments: [String],
        _ progress: @escaping @Sendable (Int64, Int64) -> Void
    ) async -> JSON? {
        do {
            let result = try await Subprocess.run(
                .path(programs.appending(name)),
                arguments: Arguments(arguments),
                // A variable: other users can read arguments, and the address may have a password.
                environment: .inherit.updating(["SAFELIGHT_STORE": Optional(server ?? "sqlite")]),
                input: .none,
                output: .sequence,
                error: .discarded
            ) { execution in
                var last: JSON?
                for try await line in execution.standardOutput.strings() {
                    guard let json = try? JSON(parsing: Array(line.utf8)) else { continue }
                    if let done = json["progress"]?["done"]?.intValue, let total = json["progress"]?["total"]?.intValue
                    {
                        progress(done, total)
                    } else {
                        last = json
                    }
                }
                return last
            }
            return result.terminationStatus.isSuccess ? result.closureResult : nil
        } catch {
            return nil
        }
    }
}

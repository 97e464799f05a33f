import Hosting
import JSONValue
import Subprocess
import SystemPackage

/// What the services' own programs find out: libraries and policy in a worker, the store against the database.
struct ProgramChecks {
    let programs: FilePath
    let library: String
    let isDeep: Bool
    /// Microseconds since 1970.
    let now: Int64

    /// - Parameter progress: told of a deep look at the files
    func findings(progress: @escaping @Sendable (_ done: Int64, _ total: Int64) -> Void) async -> [Finding] {
        await worker() + store(progress)
    }

    // MARK: Libraries

    private func worker() async -> [Finding] {
        guard
            let json = await ask(
                "thumbnailer",
                ["about", "--log", "error", "--attempt", "\(library)/library.sqlite"],
                { _, _ in }
            )
        else {
            return [
                .problem("workers", "none can be started", "`thumbnailer --check` says why")
            ]
        }
        var findings = ["imagemagick", "libheif"].map { name in
            LibraryVersions.judge(name, json[name]?.stringValue ?? "")
        }
        let open = json["open"]?.arrayValue?.compactMap(\.stringValue) ?? []
        if open.isEmpty {
            findings.append(.ok("policy", "in a worker only the formats of pictures can be opened"))
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
                    "pictures of more than \(side) pixels a side cannot be opened",
                    "let workers write a small file (TMPDIR), from which the policy is read"
                )
            )
        }
        return findings + [Self.confinement(json)]
    }

    /// Whether a worker that hostile bytes have taken over could do more than fail its job.
    static func confinement(_ json: JSON) -> Finding {
        let attempts = json["attempts"]?.objectValue?.members ?? []
        if let open = attempts.first(where: { $0.value == "succeeded" })?.name {
            return .problem(
                "workers",
                "a worker can \(open)",
                "run a kernel with Landlock (5.13 or newer, with `landlock` in its `lsm=` list)"
            )
        }
        let inForce = json["confinement"]?["inForce"]?.stringValue ?? "nothing"
        guard json["confinement"]?["isComplete"]?.boolValue == true else {
            return .warning(
                "workers",
                "what confines them: \(inForce)",
                "run a kernel with Landlock (5.13 or newer, with `landlock` in its `lsm=` list) and seccomp"
            )
        }
        return .ok("workers", "they can reach nothing but their jobs: \(inForce)")
    }

    // MARK: The library

    private func store(_ progress: @escaping @Sendable (Int64, Int64) -> Void) async -> [Finding] {
        let arguments = ["examine", "--library", library] + (isDeep ? ["--deep"] : [])
        guard let json = await ask("catalog", arguments, progress) else {
            return [.problem("database", "it cannot be looked at", "`catalog examine --library …` says why")]
        }
        return Self.judge(json, now: now)
    }

    static func judge(_ json: JSON, now: Int64) -> [Finding] {
        var findings = [
            LibraryVersions.judge("sqlite", json["sqlite"]?.stringValue ?? ""),
            LibraryVersions.judge("gexiv2", json["gexiv2"]?.stringValue ?? ""),
        ]
        let problems = json["problems"]?.arrayValue?.compactMap(\.stringValue) ?? []
        guard problems.isEmpty else {
            let text = problems.joined(separator: "; ")
            return findings + [.problem("database", "it is damaged: \(text)", "stop the services; put back a backup")]
        }
        func add(_ member: String, _ what: String, _ advice: String) {
            guard let sample = json[member], let count = sample["count"]?.intValue, count > 0 else { return }
            let first = sample["first"]?.arrayValue?.compactMap(\.stringValue) ?? []
            let names = first.joined(separator: ", ") + (count > first.count ? ", …" : "")
            findings.append(
                Finding(
                    level: .problem,
                    subject: "store",
                    text: "\(count) \(what): \(names)",
                    advice: advice
                )
            )
        }
        let before = findings.count
        add("missing", "files of assets are missing", "put them back from a backup, under resources/")
        add("wrongSize", "files of assets have another size", "put them back from a backup")
        add("damaged", "files of assets have other bytes", "the disk is failing: put them back from a backup")
        if findings.count == before {
            let files = Quantities.count(Int(clamping: json["resources"]?.intValue ?? 0), "file")
            let bytes = Quantities.bytes(json["bytes"]?.intValue ?? 0)
            let isDeep = json["isDeep"]?.boolValue == true
            findings.append(
                .ok("store", "\(files), \(bytes), all there\(isDeep ? " and each byte as it was taken in" : "")")
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
                        "the newest change is of \(Quantities.moment(newest)), which is yet to come",
                        "set the clock; what is dated by it until then is out of order"
                    )
                )
            } else {
                findings.append(.ok("history", "the newest change is of \(Quantities.moment(newest))"))
            }
        }
        findings.append(ServiceChecks.quarantine(Int(clamping: json["quarantined"]?.intValue ?? 0)))
        return findings
    }

    /// Stored bytes that nothing refers to.
    static func collectable(_ count: Int64, _ bytes: Int64, isCollected: Bool) -> Finding {
        let files = "\(Quantities.count(Int(clamping: count), "file")), \(Quantities.bytes(bytes))"
        guard !isCollected else { return .ok("collector", "\(files) collected") }
        guard count > 0 else { return .ok("collector", "nothing is to be collected") }
        return .ok(
            "collector",
            "\(files), to which nothing refers: the catalog removes them by itself, `safelight doctor --collect` now"
        )
    }

    // MARK: Asking

    /// The last line that a program writes, where it ends well; lines of progress before it are told.
    private func ask(
        _ name: String,
        _ arguments: [String],
        _ progress: @escaping @Sendable (Int64, Int64) -> Void
    ) async -> JSON? {
        do {
            let result = try await Subprocess.run(
                .path(programs.appending(name)),
                arguments: Arguments(arguments),
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

import JSONValue
import PhotoModel
import SystemPackage

/// Reports an import: a progress bar on a terminal, lines otherwise, and a summary.
struct ImportReporter {
    private let output: Output
    private let isVerbose: Bool
    private let keepsAssets: Bool
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var meter: ProgressMeter
    private var lastDrawn = Duration.zero
    private var lastLine = Duration.zero

    private(set) var imported = 0
    private(set) var duplicates = 0
    /// Known files whose stored copy was damaged and was replaced.
    private(set) var healed = 0
    /// Known files whose asset was in the trash and was restored.
    private(set) var restored = 0
    /// New files whose image the library had already, in a file with other metadata.
    private(set) var sameImage = 0
    private(set) var broken = 0
    /// Sidecars that were not applied, because their photos were in the library already.
    private(set) var notApplied = 0
    /// The number of files that were reported.
    private(set) var done = 0
    /// The asset of each file, with the index of the file; empty unless `keepsAssets`.
    private(set) var assets: [(index: Int, id: ObjectID)] = []

    /// The time between progress lines without a terminal; long, because the output of a job may be sent by mail.
    static let timePerLine = Duration.seconds(10)
    private static let timePerDrawing = Duration.milliseconds(100)

    init(total: Int, output: Output, isVerbose: Bool, keepsAssets: Bool = false) {
        self.keepsAssets = keepsAssets
        self.output = output
        self.isVerbose = isVerbose
        self.start = clock.now
        self.meter = ProgressMeter(total: total)
    }

    /// True if a file was imported or is in the library already.
    var hasSucceeded: Bool { imported + duplicates > 0 }

    /// Counts and reports the outcome of one file.
    mutating func record(_ index: Int, _ path: FilePath, _ outcome: ImportFileOutcome) throws {
        if case .notApplied(let id) = outcome { return try recordSidecar(path, of: id) }
        done += 1
        meter.step(at: clock.now - start)
        let name = path.string.printable
        var json: JSONObject = ["file": .string(path.string)]
        switch outcome {
        case .imported(let id, let sequence, let same):
            imported += 1
            if same != nil { sameImage += 1 }
            if keepsAssets { assets.append((index, id)) }
            json["outcome"] = "imported"
            json["id"] = .string(id.text)
            json["sequence"] = .int(sequence)
            json["samePicture"] = same.map { .string($0.text) }
            if isVerbose { try write("imported  \(id)  \(name)\(same.map { ", the same image as \($0)" } ?? "")") }
        case .duplicate(let id, let isHealed, let isRestored):
            duplicates += 1
            if isHealed { healed += 1 }
            if isRestored { restored += 1 }
            if keepsAssets { assets.append((index, id)) }
            json["outcome"] = "duplicate"
            json["id"] = .string(id.text)
            if isHealed { json["healed"] = true }
            if isRestored { json["restored"] = true }
            let word = isRestored ? "restored" : isHealed ? "healed  " : "known   "
            if isVerbose || isHealed || isRestored { try write("\(word)  \(id)  \(name)") }
        case .broken(let error):
            broken += 1
            json["outcome"] = "broken"
            json["error"] = ["name": .string(error.name), "message": .string(error.message)]
            if !output.isJSON {
                clearBar()
                // Messages about a path name it.
                let message = error.message.printable
                let prefix = message.hasPrefix(name) ? "" : "\(name): "
                output.note("broken: \(prefix)\(message) (\(error.name.printable))")
            }
        case .notApplied: break
        }
        if output.isJSON { try output.json(.object(json)) }
        try draw()
    }

    /// Counts a sidecar that was not applied. An earlier import may have applied it.
    private mutating func recordSidecar(_ path: FilePath, of id: ObjectID) throws {
        notApplied += 1
        if output.isJSON {
            try output.json(["file": .string(path.string), "outcome": "notApplied", "id": .string(id.text)])
        } else if isVerbose {
            try write("not used  \(id)  \(path.string.printable)")
        }
    }

    private func write(_ line: String) throws {
        guard !output.isJSON else { return }
        clearBar()
        try output.line(line)
    }

    private mutating func draw() throws {
        let now = meter.elapsed
        if output.showsProgress {
            guard now - lastDrawn >= Self.timePerDrawing || meter.done == meter.total else { return }
            lastDrawn = now
            try? Output.write("\r\u{1B}[K" + meter.bar(width: 30), to: .standardError)
        } else if !isVerbose && !output.isJSON {
            guard now - lastLine >= Self.timePerLine else { return }
            lastLine = now
            output.note(meter.line)
        }
    }

    func clearBar() {
        if output.showsProgress { try? Output.write("\r\u{1B}[K", to: .standardError) }
    }

    /// Prints the summary.
    ///
    /// - Parameters:
    ///   - others: the number of files ignored because they are not images
    ///   - isStopped: true if the import was stopped before its end
    func finish(others: Int, isStopped: Bool) throws {
        clearBar()
        let elapsed = clock.now - start
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        if output.isJSON {
            return try output.json([
                "summary": [
                    "imported": JSON(imported), "duplicates": JSON(duplicates), "broken": JSON(broken),
                    "healed": JSON(healed), "restored": JSON(restored), "samePicture": JSON(sameImage),
                    "notApplied": JSON(notApplied), "others": JSON(others), "seconds": .double(seconds),
                    "isStopped": .bool(isStopped),
                ]
            ])
        }
        var parts = ["\(imported) imported", "\(duplicates) already there", "\(broken) broken"]
        if sameImage > 0 {
            parts[0] += ", \(sameImage) of them with an image that is already there (safelight duplicates)"
        }
        if restored > 0 { parts.append("\(restored) restored from the trash") }
        if healed > 0 { parts.append("\(healed) damaged and replaced") }
        if notApplied > 0 {
            let count = QuantityFormatter.count(notApplied, "sidecar")
            parts.append("\(count) not applied to photos that were already there")
        }
        if others > 0 { parts.append("\(QuantityFormatter.count(others, "other file")) ignored") }
        let rate = seconds > 0 ? ", \(QuantityFormatter.rate(Double(meter.done) / seconds)) files/s" : ""
        try output.line("\(parts.joined(separator: ", ")) in \(QuantityFormatter.clock(elapsed))\(rate)")
        if isStopped { output.note("stopped before the end; run the command again to continue") }
    }
}

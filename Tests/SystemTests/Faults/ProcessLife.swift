import Foundation
import TestSupport

/// The memory, open descriptors and threads of one process of a service, from its start to its end.
struct ProcessLife: Sendable {
    /// A figure of a process.
    enum Figure: String, CaseIterable, Sendable {
        /// RSS, in KiB.
        case resident = "RSS"
        /// PSS, in KiB.
        case proportional = "PSS"
        case descriptors
        case threads
        /// Child processes.
        case workers

        var isMemory: Bool { self == .resident || self == .proportional }
    }

    struct Sample: Sendable {
        /// The time since the first sample of all processes.
        var seconds: Double
        var figures: [Figure: Double]
    }

    let service: SafelightFixture.Service
    let process: Int32
    var samples: [Sample] = []

    /// The first part of a life, in which caches fill and code is read for the first time.
    static let warmUp = 1.0 / 3
    /// The minimum number of samples after the warm-up for a slope.
    static let fewest = 16

    /// The samples after the warm-up.
    var measured: ArraySlice<Sample> { samples[Int(Double(samples.count) * Self.warmUp)...] }

    /// The time of the measured samples, in seconds.
    var span: Double { (measured.last?.seconds ?? 0) - (measured.first?.seconds ?? 0) }

    /// Returns the mean of a figure over the measured samples.
    func mean(_ figure: Figure) -> Double {
        measured.reduce(0) { $0 + $1.figures[figure, default: 0] } / Double(max(1, measured.count))
    }

    /// Returns the slope of the line of least squares through the measured samples of a figure, for one second; nil if
    /// the process did not live long enough.
    func slope(_ figure: Figure) -> Double? {
        guard measured.count >= Self.fewest else { return nil }
        let time = measured.reduce(0) { $0 + $1.seconds } / Double(measured.count)
        let mean = mean(figure)
        var (together, alone) = (0.0, 0.0)
        for sample in measured {
            together += (sample.seconds - time) * (sample.figures[figure, default: 0] - mean)
            alone += (sample.seconds - time) * (sample.seconds - time)
        }
        return alone > 0 ? together / alone : nil
    }

    /// Returns the increase of a figure over the measured time along its slope.
    func growth(_ figure: Figure) -> Double? { slope(figure).map { $0 * span } }

    /// Returns the figures of a living process; nil if it has ended.
    static func figures(of process: Int32) -> [Figure: Double]? {
        func lines(_ file: String) -> [Substring] {
            ((try? String(contentsOfFile: "/proc/\(process)/\(file)", encoding: .utf8)) ?? "").split(separator: "\n")
        }
        func number(_ name: String, _ lines: [Substring]) -> Double? {
            lines.first { $0.hasPrefix(name) }.flatMap { Double($0.filter(\.isNumber)) }
        }
        let status = lines("status")
        guard let resident = number("VmRSS:", status), let threads = number("Threads:", status),
            let proportional = number("Pss:", lines("smaps_rollup")),
            let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
        else { return nil }
        return [
            .resident: resident, .proportional: proportional, .threads: threads,
            .descriptors: Double(descriptors), .workers: Double(ProcessStatus.children(of: process).count),
        ]
    }

    /// One line for each figure: its mean, its slope for an hour and the growth over the measured time.
    var report: String {
        let lines = Figure.allCases.compactMap { figure -> String? in
            guard let slope = slope(figure), let growth = growth(figure) else { return nil }
            let (scale, unit) = figure.isMemory ? (1024.0, " MiB") : (1.0, "")
            func text(_ value: Double) -> String { String(format: "%.2f", value / scale) + unit }
            return "\(figure.rawValue) \(text(mean(figure))), \(text(slope * 3600)) an hour, \(text(growth)) in all"
        }
        let title = "\(service.rawValue) \(process): \(samples.count) samples, measured over \(Int(span)) s"
        return ([title] + lines).joined(separator: "; ")
    }
}

/// Samples the processes of the four services until its task is cancelled.
struct ProcessSampler: Sendable {
    let services: SafelightFixture
    let lives = AwaitableValue<[ProcessLife]>([])

    func run(every interval: Duration) async {
        let beginning = ContinuousClock.now
        var reported = 0.0
        while !Task.isCancelled {
            let seconds = (ContinuousClock.now - beginning) / .seconds(1)
            if seconds > reported + 300 {
                reported = seconds
                for life in lives.current where services.program(life.service)?.processIdentifier == life.process {
                    TestPaths.report("after \(Int(seconds)) s: " + life.report)
                }
            }
            for service in SafelightFixture.Service.allCases {
                guard let process = services.program(service)?.processIdentifier,
                    let figures = ProcessLife.figures(of: process)
                else { continue }
                lives.withLock { lives in
                    let sample = ProcessLife.Sample(seconds: seconds, figures: figures)
                    if let index = lives.firstIndex(where: { $0.process == process }) {
                        lives[index].samples.append(sample)
                    } else {
                        lives.append(ProcessLife(service: service, process: process, samples: [sample]))
                    }
                }
            }
            try? await Task.sleep(for: interval)
        }
    }
}

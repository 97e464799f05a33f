import Foundation
import Imaging
import JSONValue
import PhotoModel
import TestSupport

/// Ten color operations and a crop of a JPEG, from file to file, against decoding and encoding alone, one `convert`
/// command and a libvips pipeline; and a preview at screen size against a thumbnail without the edit.
enum EditBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "edits") else { return }
        guard let vips = TestPaths.program("vips") else {
            return bench.addGap("edits", "vips is not installed (Debian: libvips-tools)")
        }
        // Both sides may use all processors.
        unsetenv("VIPS_CONCURRENCY")
        ImagingLibrary.start(threads: ProcessInfo.processInfo.activeProcessorCount)
        let folder = try bench.paths.folder("edits")
        for (megapixels, width, height) in [(12, 4000, 3000), (24, 6000, 4000)] {
            let photo = [UInt8](
                try await ThumbnailBenchmarks.largePhoto(folder, vips: vips, width: width, height: height)
            )
            let job = Job(size: "\(megapixels)-megapixel", folder: folder, photo: photo)
            try Data(photo).write(to: URL(fileURLWithPath: job.input))
            try await compareWithEncoding(bench, job)
            try await compareWithConvert(bench, job)
            try await compareEngines(bench, job)
            try await compareWithLibvips(bench, job)
            if megapixels == 12 { try await comparePreview(bench, job) }
        }
    }

    private struct Job: Sendable {
        let size: String
        let folder: String
        /// The bytes of the JPEG file.
        let photo: [UInt8]
        var input: String { "\(folder)/in.jpg" }

        /// Returns the name of a comparison, such as `edits.sharpen.12-megapixel`; `--only edits.sharpen` selects both
        /// sizes.
        func name(_ test: String) -> String { "edits.\(test).\(size)" }

        /// Writes the edited image to a file.
        func render(_ list: AdjustmentList, engine: RenderEngine = .fused) throws {
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: input)))
            let image = try AdjustmentRendering.render(bytes, list, engine: engine)
            try Data(image.bytes).write(to: URL(fileURLWithPath: "\(folder)/ours.jpg"))
        }
    }

    private static func adjustment(_ kind: AdjustmentKind, _ members: JSONObject) throws -> Adjustment {
        try Adjustment(kind, members)
    }

    /// Returns a crop to nine tenths of each side, followed by ten color operations.
    private static func list() throws -> AdjustmentList {
        AdjustmentList(operations: [
            .crop(UnitRect(x: 0.05, y: 0.05, width: 0.9, height: 0.9)), .exposure(0.3), .temperature(0.2),
            try adjustment(.tint, ["value": 0.1]), .brightness(0.1), .contrast(0.2),
            try adjustment(.highlights, ["value": -0.3]),
            try adjustment(.shadows, ["value": 0.3]), try adjustment(.levels, ["black": 0.02, "white": 0.97]),
            .vibrance(0.3),
            .saturation(0.1),
        ])
    }

    private static func compareWithEncoding(_ bench: BenchmarkContext, _ job: Job) async throws {
        guard bench.includes(job.name("alone")) else { return }
        let own = try await ownMemory(job)
        let list = try list()
        try await bench.compare(
            [
                Comparison(
                    name: job.name("alone"),
                    ours: "ten colour operations and a crop",
                    peer: "the same decoder and encoder alone",
                    unit: "ms",
                    smallerIsBetter: true,
                    aim: .ratio(1.5)
                )
            ],
            ours: { [1000 * (try await blockingSeconds { try job.render(list) })] },
            peer: { [1000 * (try await blockingSeconds { try job.render(AdjustmentList()) })] },
            notes: { [own] }
        )
    }

    private static func compareWithConvert(_ bench: BenchmarkContext, _ job: Job) async throws {
        guard bench.includes(job.name("convert")) else { return }
        guard let convert = TestPaths.program("convert") else {
            return bench.addGap(job.name("convert"), "convert is not installed (Debian: imagemagick)")
        }
        let list = try list()
        let arguments = [
            job.input, "-gravity", "center", "-crop", "90%x90%+0+0", "+repage", "-colorspace", "RGB", "-evaluate",
            "multiply", "1.23", "-channel", "R", "-evaluate", "multiply", "1.07", "-channel", "G", "-evaluate",
            "multiply", "0.97", "-channel", "B", "-evaluate", "multiply", "0.93", "+channel", "-colorspace", "sRGB",
            "-gamma", "1.07", "-sigmoidal-contrast", "2x50%", "-level", "2%,97%", "-function", "Polynomial",
            "-0.3,0.3,1,0", "-function", "Polynomial", "0.3,-0.6,1.3,0", "-modulate", "100,115", "-modulate",
            "100,110", "-quality", "92", "-sampling-factor", "1x1", "\(job.folder)/convert.jpg",
        ]
        let memory = try await memory(of: convert, arguments)
        try await bench.compare(
            [
                Comparison(
                    name: job.name("convert"),
                    ours: "ten colour operations and a crop, in process",
                    peer: "one convert command with similar operations",
                    unit: "images/s",
                    aim: .ratio(3)
                )
            ],
            ours: { [1 / (try await blockingSeconds { try job.render(list) })] },
            peer: { [1 / (try await seconds { _ = try await runProgram(convert, arguments) })] },
            notes: { [memory] }
        )
    }

    /// Compares the engine "imagemagick" with the `convert` commands that are equivalent to the edits.
    private static func compareEngines(_ bench: BenchmarkContext, _ job: Job) async throws {
        guard TestPaths.program("convert") != nil else { return }
        try await compareEngine(bench, job, "imagemagick", "ten colour operations and a crop", try list())
        let curves = AdjustmentList(operations: [.exposure(0.3), .contrast(0.2)])
        try await compareEngine(bench, job, "curves", "exposure and contrast", curves)
        let hues = AdjustmentList(operations: [try adjustment(.hsl, ["greenSaturation": 0.5, "blueHue": 0.2])])
        try await compareEngine(bench, job, "hues", "hsl", hues)
        // A pair takes a quarter of a minute.
        let look = AdjustmentList(operations: [try adjustment(.lut, ["table": .string(Self.lookTable)])])
        try await compareEngine(bench, job, "look", "a look, by a HALD CLUT,", look, pairs: 5)
        let sharp = AdjustmentList(operations: [try adjustment(.sharpen, ["amount": 1])])
        try await compareEngine(bench, job, "sharpen", "sharpening", sharp)
    }

    /// The memory limits of a worker. With Debian's limit of 256 MiB `convert` stores images of 24 megapixels in files,
    /// and some comparisons take minutes.
    private static let policy = """
        <policymap>
          <policy domain="resource" name="memory" value="4GiB"/>
          <policy domain="resource" name="map" value="4GiB"/>
          <policy domain="resource" name="area" value="1GP"/>
        </policymap>
        """

    /// A .cube file with 17 points per channel, which mixes the channels, in Base64.
    private static let lookTable: String = {
        var text = "LUT_3D_SIZE 17\n"
        for index in 0..<17 * 17 * 17 {
            let (r, g, b) = (Double(index % 17) / 16, Double(index / 17 % 17) / 16, Double(index / 289) / 16)
            text += "\(0.1 + 0.8 * r + 0.1 * g) \(0.9 * g * g + 0.05 * b) \(0.2 + 0.5 * b + 0.2 * r)\n"
        }
        return Data(text.utf8).base64EncodedString()
    }()

    private static func compareEngine(
        _ bench: BenchmarkContext,
        _ job: Job,
        _ name: String,
        _ text: String,
        _ list: AdjustmentList,
        pairs: Int = 10
    ) async throws {
        guard bench.includes(job.name(name)) else { return }
        let script = "\(job.folder)/edit.sh"
        try Data(AdjustmentDescription.script(job.photo, list)).write(to: URL(fileURLWithPath: script))
        try Data(Self.policy.utf8).write(to: URL(fileURLWithPath: "\(job.folder)/policy.xml"))
        let policy = "MAGICK_CONFIGURE_PATH=\(job.folder)"
        try await bench.compare(
            [
                Comparison(
                    name: job.name(name),
                    ours: "\(text) by the engine imagemagick, in process",
                    peer: "its own command for convert, with as much memory",
                    unit: "images/s",
                    aim: .ratio(1.5)
                )
            ],
            pairs: min(pairs, bench.pairs),
            ours: { [1 / (try await blockingSeconds { try job.render(list, engine: .imagemagick) })] },
            peer: {
                let arguments = [policy, "/bin/sh", script, job.input, "\(job.folder)/script.jpg"]
                return [1 / (try await seconds { _ = try await runProgram("/usr/bin/env", arguments) })]
            }
        )
    }

    /// A libvips pipeline built through its Python binding; only the pipeline itself is timed.
    private static let pipeline = """
        import sys, time, math, pyvips
        start = time.perf_counter()
        image = pyvips.Image.new_from_file(sys.argv[1], access="sequential")
        width, height = image.width, image.height
        image = image.crop(width // 20, height // 20, width * 9 // 10, height * 9 // 10)
        image = image.colourspace("scrgb").linear([1.32, 1.19, 1.15], [0, 0, 0])
        image = image.recomb([[1.08, -0.07, -0.01], [-0.02, 1.03, -0.01], [-0.02, -0.07, 1.09]]).colourspace("srgb")
        def curve(v):
            v = v ** 0.93
            v = (2 * v) ** 1.15 / 2 if v < 0.5 else 1 - (2 - 2 * v) ** 1.15 / 2
            v = v - 0.3 * v * v * (1 - v)
            v = v + 0.3 * v * (1 - v) ** 2
            return min(1, max(0, (v - 0.02) / 0.95))
        table = pyvips.Image.new_from_array([[255 * curve(i / 255) for i in range(256)]]).cast("uchar")
        image = image.maplut(table)
        image = image.recomb([[1.16, -0.14, -0.02], [-0.04, 1.06, -0.02], [-0.04, -0.14, 1.18]]).cast("uchar")
        image.write_to_file(sys.argv[2] + "[Q=92,subsample_mode=off]")
        print(time.perf_counter() - start)
        """

    private static func compareWithLibvips(_ bench: BenchmarkContext, _ job: Job) async throws {
        guard bench.includes(job.name("libvips")) else { return }
        guard let python = TestPaths.program("python3"),
            (try? await runProgram(python, ["-c", "import pyvips"])) != nil
        else { return bench.addGap(job.name("libvips"), "Python's pyvips is not installed (pip install pyvips)") }
        let list = try list()
        let memory = try await memory(of: python, ["-c", pipeline, job.input, "\(job.folder)/vips.jpg"])
        try await bench.compare(
            [
                Comparison(
                    name: job.name("libvips"),
                    ours: "ten colour operations and a crop, in process",
                    peer: "similar operations as one libvips pipeline, without Python's start",
                    unit: "ms",
                    smallerIsBetter: true,
                    aim: .ratio(1)
                )
            ],
            ours: { [1000 * (try await blockingSeconds { try job.render(list) })] },
            peer: {
                let text = try await runProgram(python, ["-c", pipeline, job.input, "\(job.folder)/vips.jpg"])
                return [1000 * (Double(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? .infinity)]
            },
            notes: { [memory] }
        )
    }

    private static func comparePreview(_ bench: BenchmarkContext, _ job: Job) async throws {
        guard bench.includes(job.name("preview")) else { return }
        let list = try list()
        try await bench.compare(
            [
                Comparison(
                    name: job.name("preview"),
                    ours: "a preview of the edit, 1024 pixels",
                    peer: "a thumbnail of the same size, without the edit",
                    unit: "ms",
                    smallerIsBetter: true,
                    aim: .figure(60)
                )
            ],
            ours: {
                let time = try await blockingSeconds {
                    _ = try AdjustmentRendering.render(job.photo, list, quality: 85, maximumSide: 1024)
                }
                return [1000 * time]
            },
            peer: {
                let time = try await blockingSeconds {
                    _ = try RenditionRenderer.render(
                        job.photo,
                        RenditionOptions(target: .size(width: 1024, height: 1024), resizeMode: .exact)
                    )
                }
                return [1000 * time]
            }
        )
    }

    /// Renders once, and returns a text with the increase of the peak resident memory.
    private static func ownMemory(_ job: Job) async throws -> String {
        let list = try list()
        try ProcessTable.resetPeak(getpid())
        let before = ProcessTable.residentBytes(getpid()) >> 20
        _ = try await blockingSeconds { try job.render(list) }
        let peak = ProcessTable.peakBytes(getpid()) >> 20
        return "peak resident memory of a render: \(max(0, peak - before)) MiB above \(before) MiB"
    }

    /// Runs a program, and returns a text with its peak resident memory.
    private static func memory(of program: String, _ arguments: [String]) async throws -> String {
        guard let python = TestPaths.program("python3") else {
            return "memory was not measured: python3 is not installed"
        }
        let text = try await runProgram(
            python,
            [
                "-c",
                "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
                    + "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                program,
            ] + arguments
        )
        let kibibytes = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
        return "peak resident memory of the peer: \(kibibytes >> 10) MiB"
    }
}

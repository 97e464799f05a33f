import Foundation
import TestSupport

/// libvips in one process with a thread per processor; `vips_thumbnail` writes each image, one size after another.
///
/// It uses libvips' own Python binding, which releases Python's lock during each call; Python's start is not measured.
final class VipsThreadPool {
    let threads = ProcessInfo.processInfo.activeProcessorCount
    private let child: Child
    private let output: String

    init(_ bench: BenchmarkContext) async throws {
        guard let python = TestPaths.program("python3"),
            (try? await runProgram(python, ["-c", "import pyvips"])) != nil
        else { throw BenchmarkError("Python's pyvips is not installed: `make bench` installs it") }
        output = try bench.paths.folder("vips")
        setenv("VIPS_CONCURRENCY", "1", 1)
        child = try Child(["-c", Self.script, "\(threads)", output], program: python)
        try await child.expect("ready")
    }

    var process: Int32 { child.process.processIdentifier }

    /// Writes images of all files at all sizes, and returns the seconds.
    func seconds(_ files: [String], sizes: [Int]) async throws -> Double {
        try await Benchmarks.seconds { try await run(files, sizes: sizes) }
    }

    func run(_ files: [String], sizes: [Int]) async throws {
        let sizes = sizes.map(String.init).joined(separator: " ")
        try child.send(sizes + "\t" + files.joined(separator: "\t"))
        try await child.expect("done")
    }

    private static let script = """
        import os, sys, concurrent.futures, pyvips
        pyvips.cache_set_max(0)
        output = sys.argv[2]
        def resize(path, sizes):
            for size in sizes:
                image = pyvips.Image.thumbnail(path, size, height=size, size="down")
                image.write_to_file(f"{output}/{os.path.basename(path)}-{size}.jpg", Q=85, strip=True)
        with concurrent.futures.ThreadPoolExecutor(int(sys.argv[1])) as pool:
            print("ready", flush=True)
            for line in sys.stdin:
                sizes, *files = line.rstrip("\\n").split("\\t")
                list(pool.map(lambda path: resize(path, [int(size) for size in sizes.split()]), files))
                print("done", flush=True)
        """
}

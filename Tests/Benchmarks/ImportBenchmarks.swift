import Foundation
import Glibc
import TestSupport

/// Import of files from end to end, against plain tools that each do a part of the work. `--large` imports 100,000
/// small files and 2,000 photos.
enum ImportBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "import") else { return }
        try await compareWithTools(bench)
        try await compareSmallFiles(bench)
        try await comparePhotos(bench)
    }

    /// Imports a folder with `safelight import` into a new library, and returns the seconds.
    ///
    /// - Parameter keepsLibrary: false if the next run needs the space. After a removal, ext4 does not use the inodes
    ///   of the files for some minutes, and searching for others takes longer than the rest of an import of small files
    private static func importSeconds(
        _ bench: BenchmarkContext,
        _ source: String,
        _ name: String,
        keepsLibrary: Bool = true
    ) async throws -> Double {
        let services = try ServicesFixture(bench.paths, name)
        try await services.start("catalog")
        let time = try await seconds {
            try await runProgram(bench.paths.program("safelight"), ["import", source, "--json", "--run", services.run])
        }
        await services.stop()
        if !keepsLibrary { try FileManager.default.removeItem(atPath: services.library) }
        return time
    }

    /// Measures the import of many small files: the cost per file, without that of reading and hashing large files.
    private static func compareSmallFiles(_ bench: BenchmarkContext) async throws {
        guard bench.includes("import.small") else { return }
        let count = bench.amount(bench.isLarge ? 100_000 : 5_000, quick: 100)
        bench.log("writing \(count) files")
        let source = try bench.paths.folder("import-small")
        for index in 0..<count {
            if index.isMultiple(of: 1000) { _ = try bench.paths.folder("import-small/\(index / 1000)") }
            let jpeg = TestImages.jpeg(
                date: "2024:06:01 12:30:\(10 + index % 50)",
                offset: "+02:00",
                seed: UInt64(index)
            )
            try Data(jpeg).write(to: URL(fileURLWithPath: "\(source)/\(index / 1000)/\(index).jpg"))
        }
        var number = 0
        try await bench.compare(
            [
                Comparison(
                    name: "import.small",
                    ours: "safelight import, \(count) new JPEGs of 160x120, durable, metadata read",
                    peer: "cp -r and sync of its folder",
                    unit: "files/s",
                    aim: .figure(3000)
                )
            ],
            pairs: bench.isLarge ? 1 : nil,
            warmUps: bench.isLarge ? 0 : 1,
            ours: {
                number += 1
                return [Double(count) / (try await importSeconds(bench, source, "import-small-\(number)"))]
            },
            peer: {
                number += 1
                let target = bench.paths.scratch.file("import-small-copy-\(number)")
                let time = try await seconds {
                    try await runProgram("/bin/sh", ["-c", "cp -r \"$0\" \"$1\" && sync -f \"$1\"", source, target])
                }
                return [Double(count) / time]
            }
        )
    }

    /// Measures the import of copies of real photos, which differ in the bytes at their end.
    private static func comparePhotos(_ bench: BenchmarkContext) async throws {
        guard bench.includes("import.warm", "import.cold", "import.exiftool") else { return }
        guard let folder = bench.paths.photos else {
            return bench.addGap("import.warm", "there is no folder ../shared/photos; set another with --photos")
        }
        let originals = (FileManager.default.subpaths(atPath: folder) ?? []).sorted().filter { path in
            ["jpg", "jpeg"].contains((path as NSString).pathExtension.lowercased()) && !path.contains("corrupted")
        }
        guard !originals.isEmpty else { return bench.addGap("import.warm", "the folder has no JPEGs") }
        let count = bench.amount(bench.isLarge ? 2_000 : 500, quick: 20)
        let source = try bench.paths.folder("import-photos")
        var paths: [String] = []
        for index in 0..<count {
            var bytes = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(originals[index % originals.count])"))
            bytes += withUnsafeBytes(of: UInt32(index).bigEndian) { Array($0) }
            paths.append("\(source)/\(index).jpg")
            try bytes.write(to: URL(fileURLWithPath: paths[index]))
        }
        try await runProgram("/bin/sync", ["-f", source])
        let bytes = try paths.reduce(Int64(0)) { try $0 + Int64(Data(contentsOf: URL(fileURLWithPath: $1)).count) }
        var number = 0
        func importPhotos() async throws -> Double {
            number += 1
            return try await importSeconds(
                bench,
                source,
                "import-photos-\(number)",
                keepsLibrary: hasSpace(source, bytes)
            )
        }
        for (name, isCold) in [("warm", false), ("cold", true)] {
            func prepare() throws {
                for path in paths { try setCached(path, !isCold) }
            }
            try await bench.compare(
                [
                    Comparison(
                        name: "import.\(name)",
                        ours: "safelight import, \(count) photos, \(name) cache",
                        peer: "sha256sum of the same files, \(name) cache",
                        unit: "s",
                        smallerIsBetter: true,
                        aim: .ratio(1.5)
                    )
                ],
                ours: {
                    try prepare()
                    return [try await importPhotos()]
                },
                peer: {
                    try prepare()
                    return [
                        try await seconds {
                            try await runProgram("/bin/sh", ["-c", "sha256sum \"$0\"/* >/dev/null", source])
                        }
                    ]
                }
            )
        }
        guard let exiftool = TestPaths.program("exiftool") else {
            return bench.addGap("import.exiftool", "exiftool is not installed (Debian: libimage-exiftool-perl)")
        }
        try await bench.compare(
            [
                Comparison(
                    name: "import.exiftool",
                    ours: "safelight import, \(count) photos",
                    peer: "exiftool -fast of the same files, which stores nothing",
                    unit: "files/s",
                    aim: .ratio(5)
                )
            ],
            ours: {
                [Double(count) / (try await importPhotos())]
            },
            peer: {
                let time = try await seconds {
                    try await runProgram(
                        "/bin/sh",
                        ["-c", "\"$1\" -fast -q -json -n \"$0\" >/dev/null; true", source, exiftool]
                    )
                }
                return [Double(count) / time]
            }
        )
    }

    /// Returns true if the disk of a folder has space for several libraries with this number of bytes.
    private static func hasSpace(_ folder: String, _ bytes: Int64) -> Bool {
        var status = statvfs()
        guard statvfs(folder, &status) == 0 else { return false }
        return Int64(status.f_bavail) * Int64(status.f_frsize) > 8 * bytes
    }

    /// Reads a file into the system's page cache, or drops it from there.
    private static func setCached(_ path: String, _ isCached: Bool) throws {
        if isCached { return _ = try Data(contentsOf: URL(fileURLWithPath: path)) }
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw BenchmarkError("\(path) cannot be opened") }
        defer { close(file) }
        guard posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0 else {
            throw BenchmarkError("\(path) cannot be dropped from the cache")
        }
    }

    private static func compareWithTools(_ bench: BenchmarkContext) async throws {
        guard bench.includes("import.tools") else { return }
        let count = bench.amount(200, quick: 20)
        let source = try bench.paths.folder("import-source")
        for index in 0..<count {
            let jpeg = TestImages.jpeg(
                width: 320,
                height: 240,
                orientation: 1 + index % 8,
                date: "2024:06:01 12:30:\(10 + index % 50)",
                offset: "+02:00",
                latitude: 47 + Double(index) / 1000,
                longitude: 11,
                seed: UInt64(index)
            )
            try Data(jpeg).write(to: URL(fileURLWithPath: "\(source)/\(index).jpg"))
        }
        guard let exiftool = TestPaths.program("exiftool") else {
            return bench.addGap("import.tools", "exiftool is not installed (Debian: libimage-exiftool-perl)")
        }
        var number = 0
        try await bench.compare(
            [
                Comparison(
                    name: "import.tools",
                    ours: "safelight import, \(count) new JPEGs of 320x240, durable, metadata read",
                    peer: "cp, fsync of each, sha256sum, exiftool -fast: one process each",
                    unit: "files/s",
                    aim: nil
                )
            ],
            ours: {
                number += 1
                return [Double(count) / (try await importSeconds(bench, source, "import-\(number)"))]
            },
            peer: {
                number += 1
                let target = try bench.paths.folder("import-peer-\(number)")
                let script = """
                    cp "$0"/*.jpg "$1"/ && sync "$1"/*.jpg "$1" && sha256sum "$1"/*.jpg >/dev/null && \
                    "$2" -fast -q -json -n "$1" >/dev/null
                    """
                let time = try await seconds {
                    try await runProgram("/bin/sh", ["-c", script, source, target, exiftool])
                }
                return [Double(count) / time]
            }
        )
    }
}

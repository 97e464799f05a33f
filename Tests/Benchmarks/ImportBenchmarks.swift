import Foundation
import TestSupport

/// Import of files from end to end, against plain tools that each do a part of it.
enum ImportBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.wants("import") else { return }
        let count = bench.amount(200, quick: 20)
        let source = try bench.place.folder("import-source")
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
            return bench.gap("import", "exiftool is not installed (Debian: libimage-exiftool-perl)")
        }
        var number = 0
        try await bench.compare(
            [
                Comparison(
                    name: "import",
                    ours: "safelight import, \(count) new JPEGs of 320x240, durable, metadata read",
                    peer: "cp, fsync of each, sha256sum, exiftool -fast: one process each",
                    unit: "files/s",
                    aim: nil
                )
            ],
            ours: {
                number += 1
                let services = try ServicesFixture(bench.place, "import-\(number)")
                try await services.start("catalog")
                let time = try await seconds {
                    try await runProgram(
                        bench.place.program("safelight"),
                        ["import", source, "--json", "--run", services.run]
                    )
                }
                await services.stop()
                return [Double(count) / time]
            },
            peer: {
                number += 1
                let target = try bench.place.folder("import-peer-\(number)")
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

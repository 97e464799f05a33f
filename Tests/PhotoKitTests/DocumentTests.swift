import Foundation
import PhotoKit
import TestSupport
import Testing

extension PhotoKitTests {
    /// The page about Swift, and the package that contains its code.
    @Suite(.serialized, .timeLimit(.minutes(15)))
    struct Documents {
        private static func text(_ path: String) throws -> String {
            try String(contentsOfFile: TestPaths.package + "/" + path, encoding: .utf8)
        }

        /// Returns the Swift files below some folders, each line without its indentation.
        private static func sources(_ folders: [String]) throws -> String {
            try folders.flatMap { folder in
                try FileManager.default.subpathsOfDirectory(atPath: TestPaths.package + "/" + folder)
                    .filter { $0.hasSuffix(".swift") }
                    .map { try removeIndentation(text("\(folder)/\($0)")) }
            }.joined(separator: "\n")
        }

        private static func removeIndentation(_ text: String) -> String {
            text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "\n")
        }

        @Test func `each piece of code of the page is executed by a test`() throws {
            let sources = try Self.sources(["Tests/PhotoKitSample", "Tests/PhotoKitTests"])
            let blocks = try Self.text("Shared/docs/swift.md").matches(of: /(?ms)^```swift\n(.*?)^```$/).map {
                String($0.1)
            }
            #expect(blocks.count >= 6)
            for block in blocks {
                #expect(sources.contains(Self.removeIndentation(block)), "no test has this code:\n\(block)")
            }
        }

        @Test func `the page names every public type, and every type that is left out`() throws {
            let page = try Self.text("Shared/docs/swift.md")
            let sources = try Self.sources(["Shared/PhotoKit"])
            let types = sources.matches(
                of: /(?m)^public (?:final )?(?:class|struct|enum|protocol|typealias) ((?:PH|AV|CL|CG|UI)\w+)/
            ).map { String($0.1) }
            #expect(types.count > 60)
            for type in types { #expect(page.contains("`\(type)`"), "swift.md does not name \(type)") }
            for name in [
                "PHProject", "PHAssetResourceUploadJob", "PHLivePhotoEditingContext", "PHPickerViewController",
            ] {
                #expect(page.contains(name), "swift.md does not say that \(name) is left out")
            }
        }

        @Test func `no target that the product needs has unsafe flags`() throws {
            // SwiftPM refuses a dependency with unsafe flags. In the manifest, only programs and four modules that
            // PhotoKit does not need have them.
            let manifest = try Self.text("Package.swift")
            #expect(manifest.matches(of: /\.unsafeFlags/).count == 3)
            let linked = manifest.matches(of: /linkerSettings: programLinking/).count
            let program = #/executableTarget\([^()]*(?:\([^()]*\)[^()]*)*linkerSettings: programLinking/#
            #expect(linked == 2 && manifest.matches(of: program).count == linked)
            let optimized = "let optimizedModules: Set = [\"CPixels\", \"CVideo\", \"SamplePhotos\", \"TestSupport\"]"
            #expect(manifest.contains(optimized))
            #expect(manifest.matches(of: /optimizedModules\.contains/).count == 2)
            let module = try #require(manifest.firstMatch(of: /name: "PhotoKit",\n\s*dependencies: ([^\n]*)/))
            #expect(!module.1.contains("Imaging") && !module.1.contains("Video"))
        }

        /// Expects that the output of the sample is that of the page.
        private static func expectOutput(_ run: (status: Int32?, output: String, errors: String)) throws {
            let page = try text("Shared/docs/swift.md")
            let shown = try #require(page.firstMatch(of: /(?ms)^```text\n(.*?)^```$/)).1
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.output == shown)
        }

        private static func run(_ command: String, seconds: Double) throws {
            let services = try SafelightFixture("pk-sample")
            try services.start()
            for (index, name) in ["tram.jpg", "river.jpg"].enumerated() {
                let bytes = TestImages.jpeg(
                    width: 600,
                    height: 400,
                    date: "2024:06:0\(index + 1) 12:00:00",
                    seed: UInt64(index + 1)
                )
                try services.folder.write(bytes, to: name)
            }
            let script = "cd '\(services.folder.path)' && \(command) tram.jpg river.jpg"
            let run = try RunningProgram.run(
                "/bin/sh",
                ["-c", script],
                environment: services.environment,
                seconds: seconds
            )
            try expectOutput(run)
            let file = services.folder.file("thumbnail.jpg")
            #expect(UIImage(contentsOfFile: file)?.size == CGSize(width: 100, height: 100))
            #expect(services.stop() == [])
        }

        @Test func `the sample prints the output that the page shows`() throws {
            let program = URL(fileURLWithPath: TestPaths.executables + "/PhotoKitSample")
            try Self.run("'\(program.path)'", seconds: 60)
        }

        /// Resolves and builds the package as a user would. That takes minutes, so it runs only with `SAFELIGHT_SOAK`.
        @Test(.enabled(if: TestEnvironment.rounds(1) > 1, "it takes minutes; SAFELIGHT_SOAK=2 runs it"))
        func `a package that depends on the product by path builds and runs`() throws {
            let sample = TestPaths.package + "/Tests/PhotoKitSample"
            let scratch = TestPaths.package + "/.build/sample"
            try Self.run(
                "swift run --quiet --package-path '\(sample)' --scratch-path '\(scratch)' PhotoKitSample",
                seconds: 840
            )
        }
    }
}

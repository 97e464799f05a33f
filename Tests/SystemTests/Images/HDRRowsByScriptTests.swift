import Foundation
import JSONValue
import TestSupport
import Testing

/// The row about HDR as a script sees it: plain pyzmq against the real executables. The script writes gain maps in all
/// forms, and computes the formula of ISO 21496-1 from base and map.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct HDRRowsByScriptTests {
    @Test(.spec("S-33", "T-45"))
    func `images with gain maps are delivered in high dynamic range`() throws {
        let python = try Needed.python("PIL._avif, zmq")
        let services = try SafelightFixture("hdr")
        try services.start()
        let environment = services.environment.merging([
            "FILES": services.folder.path, "FFMPEG": try Needed.program("ffmpeg"),
        ]) { $1 }
        let run = try RunningProgram.run(
            python,
            ["-c", HDRScript.samples + HDRScript.rows],
            environment: environment,
            seconds: 200
        )
        #expect(run.status == 0, "\(run.errors)\n\(services.logs)")
        let lines = try run.output.split(separator: "\n").map { try JSON(parsing: String($0)) }
        #expect(lines.count == 10, "\(run.output)\n\(run.errors)")
        for line in lines { #expect(line["problem"] == nil, "\(line.text)") }

        // The command line.
        let file = services.folder.file("saved.avif")
        let saved = try services.safelight(["thumb", "ultra.jpg", "--hdr", "--size", "64", "-o", file, "--json"])
        #expect(try JSON(parsing: saved.output)["hdrHeadroom"]?.doubleValue.map { abs($0 - 5.657) < 0.001 } == true)
        // The Python package.
        let package = try RunningProgram.run(
            python,
            ["-c", Self.packageScript],
            environment: services.environment.merging(PythonPackage.environment) { $1 }
        )
        #expect(package.status == 0, "\(package.errors)")
        #expect(services.stop() == [])
    }

    private static let packageScript = """
        from safelight import Library

        library = Library()
        [asset] = [a for a in library.assets if a.original_filename == "ultra.jpg"]
        bright = library.thumbnail(asset, 64, prefer_hdr=True, format="avif")
        assert abs(bright.hdr_headroom - 5.657) < 0.001, bright.hdr_headroom
        dimmer = library.thumbnail(asset, 64, prefer_hdr=True, target_hdr_headroom=2, format="avif")
        assert abs(dimmer.hdr_headroom - 2) < 0.001, dimmer.hdr_headroom
        assert library.thumbnail(asset, 64, format="avif").hdr_headroom is None
        """

    /// Compares the headroom with the one that follows from the two numbers that ExifTool prints.
    @Test(.spec("T-45"))
    func `a photo of an Apple camera has the headroom of its maker note`() throws {
        let photo = try #require(
            try Needed.photographs(["heic"]).first { $0.lastPathComponent == "iphone_13_pro_max.HEIC" }
        )
        let services = try SafelightFixture("apple-hdr")
        try services.start([.catalog, .changeBroker, .thumbnailer])
        try #require(try services.safelight(["import", "--wait", "60", photo.path]).status == 0)
        let facts = try RunningProgram.run(
            try Needed.program("exiftool"),
            ["-json", "-n", "-HDRHeadroom", "-HDRGain", photo.path],
            seconds: 30
        )
        let values = try #require(try JSON(parsing: facts.output).arrayValue?.first)
        let (headroom, gain) = (values["HDRHeadroom"]?.doubleValue, values["HDRGain"]?.doubleValue)
        let stops = try -20 * #require(gain) + 1.8
        #expect(try #require(headroom) < 1 && #require(gain) <= 0.01)
        let saved = try services.safelight([
            "thumb", photo.lastPathComponent, "--hdr", "--size", "256", "-o", services.folder.file("a.avif"), "--json",
        ])
        let answered = try JSON(parsing: saved.output)["hdrHeadroom"]?.doubleValue
        #expect(try abs(#require(answered) - exp2(stops)) < 0.001)
        let shown = try services.safelight(["show", photo.lastPathComponent, "--json"])
        #expect(shown.output.contains("photoHDR"))
        #expect(services.stop() == [])
    }
}

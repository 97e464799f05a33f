import Foundation
import Hosting
import TestSupport
import Testing

/// The Python package: its types, its wheel, and its own tests, which start the services themselves.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct PythonPackageTests {
    private static let package = TestPaths.package + "/Shared/python"

    /// Runs Python with the package and the modules that `make setup` installs.
    private func run(_ module: String, _ arguments: [String]) throws -> (status: Int32?, output: String, errors: String)
    {
        try RunningProgram.run(
            try Needed.python(module),
            ["-B"] + arguments,
            environment: PythonPackage.environment.merging(["SAFELIGHT_EXECUTABLES": TestPaths.executables]) { $1 },
            seconds: 240
        )
    }

    @Test func `the package has no errors under mypy strict, as Python 3 dot 9`() throws {
        let cache = TestPaths.package + "/.build/mypy"
        let options = ["--config-file", Self.package + "/pyproject.toml", "--cache-dir", cache]
        let checked = try run("mypy", ["-m", "mypy"] + options + [Self.package + "/safelight"])
        #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
        #expect(checked.output.contains("Success"))
    }

    @Test func `the wheel has the version of the services, its types and one dependency`() throws {
        let folder = try TemporaryFolder("wheel")
        try FileManager.default.copyItem(atPath: Self.package, toPath: folder.file("source"))
        let pip = ["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
        let built = try run("setuptools", pip + ["--wheel-dir", folder.path, folder.file("source")])
        #expect(built.status == 0, "\(built.errors)")
        let wheel = folder.file("safelight-\(ServiceVersion.current)-py3-none-any.whl")
        let read = """
            import sys, zipfile
            names = zipfile.ZipFile(sys.argv[1]).namelist()
            metadata = zipfile.ZipFile(sys.argv[1]).read(next(name for name in names if name.endswith("METADATA"))).decode()
            assert "safelight/py.typed" in names, names
            assert [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra" not in line] == [
                "Requires-Dist: pyzmq>=24"], metadata
            """
        let checked = try run("zmq", ["-c", read, wheel])
        #expect(checked.status == 0, "\(checked.errors)")
    }

    /// The scripts in `Shared/python/tests/system`. The mirrors run for a minute if `SAFELIGHT_SOAK` is set.
    @Test(arguments: [
        "test_library.py", "test_documentation.py", "test_examples.py", "test_migration.py", "test_mirror.py",
    ])
    func `the package passes its tests against the services`(script: String) throws {
        _ = try Needed.program("ffmpeg")
        let checked = try run("PIL", [Self.package + "/tests/system/" + script])
        // unittest reports failed tests below a line of this kind; above it is the output of the programs.
        let failures = checked.errors.range(of: "=====").map { checked.errors[$0.lowerBound...] } ?? checked.errors[...]
        #expect(checked.status == 0, "\(failures.suffix(8000).replacing("\n", with: " | "))")
        TestPaths.report("\(script): \(checked.output)")
    }
}

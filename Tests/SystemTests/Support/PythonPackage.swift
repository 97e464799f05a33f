import TestSupport

/// The Python package of `Shared/python`.
enum PythonPackage {
    /// The variables with which Python finds the package, and the modules that `make setup` installs.
    static var environment: [String: String] {
        let folders = [TestPaths.package + "/Shared/python", TestEnvironment.text("PYTHONPATH")].compactMap { $0 }
        return ["PYTHONPATH": folders.joined(separator: ":")]
    }
}

import TestSupport

/// Shared libraries in C that tests preload into services with `LD_PRELOAD`, to change calls of the C library.
enum PreloadedLibrary {
    /// Compiles a library.
    ///
    /// - Parameters:
    ///   - name: the name of the library without "lib" and extension
    ///   - folder: the folder for source and library
    /// - Returns: the path of the library
    static func compile(_ source: String, _ name: String, in folder: TemporaryFolder) throws -> String {
        let compiler = try Needed.program(oneOf: "cc", "clang")
        let file = try folder.write(source.utf8, to: "\(name).c")
        let library = folder.file("lib\(name).so")
        let run = try RunningProgram.run(compiler, ["-shared", "-fPIC", "-O1", "-o", library, file, "-ldl"])
        guard run.status == 0 else { throw FixtureError(description: run.errors) }
        return library
    }
}

import Foundation
import TestSupport
import Testing

/// Tests of the lists of Debian packages in the Makefile, the container files and the manifest.
@Suite(.timeLimit(.minutes(1)))
struct PackageListTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOfFile: TestPaths.package + "/" + path, encoding: .utf8)
    }

    /// Returns the words of a variable of the Makefile.
    private func variable(_ name: String) throws -> Set<String> {
        let lines = try text("Makefile").replacing("\\\n", with: " ").split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix(name + " :=") }, "\(name)")
        return Set(line.dropFirst(name.count + 3).split(whereSeparator: \.isWhitespace).map(String.init))
    }

    /// Returns the packages that a stage of the Dockerfile installs.
    private func packages(ofStage stage: String) throws -> Set<String> {
        let dockerfile = try text("compose/Dockerfile").replacing("\\\n", with: " ")
        let lines = dockerfile.split(separator: "\n").drop { !$0.hasSuffix(" AS \(stage)") }
        let line = try #require(lines.first { $0.contains("apt-get install") }, "\(stage)")
        let install = try #require(line.components(separatedBy: "&&").first { $0.contains("apt-get install") })
        return Set(install.split(separator: " ").map(String.init).filter { !$0.hasPrefix("-") })
            .subtracting(["apt-get", "install"])
    }

    @Test func `the container is built with the build packages of the Makefile`() throws {
        #expect(try packages(ofStage: "build") == variable("BUILD_PACKAGES"))
    }

    @Test func `the sources of all modules are copied into the build container`() throws {
        let stages = try text("compose/Dockerfile").components(separatedBy: "\nFROM ")
        let stage = try #require(stages.first { $0.contains(" AS build") })
        let copied = stage.matches(of: /\nCOPY (\S+) \S+/).map { String($0.output.1) }
        let samples = try text("Package.swift").matches(of: /sample\(folder: "([^"]+)"\)/).map { String($0.output.1) }
        #expect(samples.count == 2)
        for folder in ["Services", "Shared", "Tests"] + samples {
            #expect(copied.contains { folder == $0 || folder.hasPrefix($0 + "/") }, "\(folder)")
        }
    }

    @Test func `the container of the programs has the fonts of the Makefile`() throws {
        #expect(try packages(ofStage: "safelight").filter { $0.hasPrefix("fonts-") } == variable("FONT_PACKAGES"))
    }

    @Test func `the S3 server in the containers has the package versions of the tests`() throws {
        let stages = try text("compose/Dockerfile").components(separatedBy: "\nFROM ")
        let stage = try #require(stages.first { $0.contains(" AS s3") }).replacing("\\\n", with: " ")
        let line = try #require(stage.components(separatedBy: "&&").first { $0.contains("pip install") })
        let installed = Set(line.split(whereSeparator: \.isWhitespace).map(String.init).filter { $0.contains("==") })
        #expect(installed.count == 3)
        #expect(try installed.isSubset(of: variable("PYTHON_REQUIREMENTS")))
    }

    @Test func `the container of the cluster has the packages of its demo`() throws {
        // The demo also needs iproute2 and procps for its networks; PostgreSQL is one of the packages for the tests.
        let demo = try variable("CLUSTER_PACKAGES").subtracting(["iproute2", "procps"]).union(["postgresql"])
        #expect(try packages(ofStage: "cluster") == demo)
    }

    @Test
    func `installed programs search for the Swift libraries in the folder that make install copies them to`() throws {
        let folder = try #require(try text("Package.swift").firstMatch(of: /rpath=\$ORIGIN\/\.\.\/([^"]+)"/)).output.1
        let rules = try text("Makefile").components(separatedBy: "\n\n")
        let install = try #require(rules.first { $0.hasPrefix("install:") })
        #expect(install.contains("-t '$(INSTALLED)/\(folder)'"))
    }

    @Test func `the long tests name the package that make soak installs`() throws {
        #expect(try variable("SOAK_PACKAGES") == [SwiftServer.package])
    }

    @Test func `each library of the manifest is installed for a build`() throws {
        let manifest = try text("Package.swift")
        let named = Set(manifest.matches(of: /apt: "([^"]+)"/).map { String($0.output.1) })
        #expect(named.count > 5)
        // The Makefile need not list this package, because the toolchain requires it.
        #expect(try named.subtracting(variable("BUILD_PACKAGES")) == ["libc6-dev"])
    }
}

import Foundation
import TestSupport
import Testing

/// Tests of the layers: modules import only declared modules, and C libraries are imported only by their own modules.
@Suite(.timeLimit(.minutes(5)))
struct LayerTests {
    let tree: SourceTree

    init() throws { tree = try SourceTree.read() }

    /// The modules of the toolchain.
    static let standard: Set<String> = [
        "Foundation", "FoundationEssentials", "Glibc", "Synchronization", "Dispatch", "Swift", "_Concurrency", "Darwin",
        "Musl",
    ]

    /// The only modules, besides their tests, that may import each of these.
    static let importers: [String: Set<String>] = [
        "CZeroMQ": ["Messaging", "System", "Benchmarks"],
        "CMagickWand": ["Imaging"],
        "CHeif": ["Imaging"],
        "CJXL": ["Imaging", "Metadata"],
        "CPixels": ["Imaging", "Video"],
        "CVideo": ["Video"],
        "CMetadata": ["Metadata"],
        "CExiv2": ["CMetadata"],
        "CJPEG": ["Imaging", "Metadata", "PhotoKit"],
        "CLibJPEG": ["CJPEG"],
        "CZlib": ["ImageFormats"],
        "CTimeZones": ["Metadata"],
        "CCrypto": ["Basics"],
        "CCurl": ["ObjectStorage"],
        "CPQ": ["PostgreSQL"],
        "CProcess": ["Hosting", "Storage", "CommandLine"],
        "CAcceptLimit": ["Hosting"],
        "CWriteAheadLog": ["Storage"],
    ]

    @Test func `the manifest is parsed`() throws {
        let names = tree.manifest.modules.map(\.name)
        #expect(names.count > 20)
        #expect(Set(names).count == names.count)
        #expect(tree.manifest.module("PhotoClient")?.dependencies.contains("Contracts") == true)
        #expect(tree.manifest.module("SystemTests")?.dependencies.contains("Catalog") == true)
        #expect(tree.manifest.module("CommandLine")?.path == "Services/CommandLine")
    }

    @Test func `a module depends only on lower layers`() throws {
        for module in tree.manifest.modules {
            for dependency in module.dependencies {
                guard let below = tree.manifest.module(dependency), !below.isSystemLibrary else { continue }
                #expect(below.layer < module.layer, "\(module.name) depends on \(dependency)")
            }
        }
    }

    @Test func `a module imports only what the manifest declares`() throws {
        for file in tree.files {
            let module = try #require(tree.manifest.module(file.module))
            // Program.swift may be an executable that imports the module beside it.
            let additional =
                file.name == "Program.swift" ? [module.name] : module.path.hasPrefix("Tests/") ? ["Testing"] : []
            let allowed = module.dependencies.union(Self.standard).union(additional)
            let undeclared = file.imports.subtracting(allowed).sorted()
            #expect(undeclared.isEmpty, "\(file.path) imports \(undeclared.joined(separator: ", "))")
        }
    }

    @Test func `C libraries are imported only by their own modules`() throws {
        for file in tree.files {
            for (module, modules) in Self.importers where file.imports.contains(module) {
                let importer = file.module.hasSuffix("Tests") ? String(file.module.dropLast(5)) : file.module
                #expect(modules.contains(importer), "\(file.path) imports \(module)")
            }
        }
    }

    @Test func `only Storage and the Store and Schema files of services import GRDB`() throws {
        for file in tree.productFiles where !file.imports.isDisjoint(with: ["GRDB", "GRDBSQLite"]) {
            #expect(file.module == "Storage" || SourceRules.mayContainSQL(file), "\(file.path) imports GRDB")
        }
    }

    @Test func `every folder is a module and every module a folder`() throws {
        let exceptions: [String: Set<String>] = ["Services": [], "Shared": ["docs", "python"], "Tests": []]
        for (folder, others) in exceptions {
            let planned = tree.manifest.modules.filter { $0.path.hasPrefix("\(folder)/") }.map(\.name)
            let found = Set(try tree.names(in: folder)).subtracting(others)
            let unmatched = found.symmetricDifference(planned).sorted()
            #expect(
                unmatched.isEmpty,
                "\(folder): \(unmatched.joined(separator: ", ")) is a folder or a module, not both"
            )
        }
    }

    @Test func `the top level contains only the agreed names`() throws {
        let allowed: Set<String> = ["Package.swift", "Services", "Shared", "Tests", "compose", "Makefile", "README.md"]
        // Ignored by git: the pinned package versions, and the output of `make demo`.
        let generated: Set<String> = ["Package.resolved", "demo"]
        #expect(Set(try tree.names(in: "")).subtracting(allowed).subtracting(generated).isEmpty)
    }

    @Test func `the page about the architecture has every module in its table`() throws {
        let page = try String(contentsOf: tree.root.appending(path: "Shared/docs/architecture.md"), encoding: .utf8)
        let table = page.split(separator: "\n").filter { $0.hasPrefix("|") }.joined(separator: "\n")
        let missing = tree.manifest.modules.filter { !$0.isTests && !table.contains("`\($0.name)`") }.map(\.name)
        #expect(missing.isEmpty, "architecture.md does not name \(missing.joined(separator: ", "))")
    }
}

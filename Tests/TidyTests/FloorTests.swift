import Foundation
import Testing

/// Checks of the layers: modules import only what they declare, and C libraries stay in their modules.
@Suite(.timeLimit(.minutes(5)))
struct FloorTests {
    let house: House

    init() throws { house = try House.read() }

    /// The modules of the toolchain.
    static let standard: Set<String> = [
        "Foundation", "FoundationEssentials", "Glibc", "Synchronization", "Dispatch", "Swift", "_Concurrency", "Darwin",
        "Musl",
    ]

    /// The only modules, besides their tests, that may import each of these.
    static let homes: [String: Set<String>] = [
        "CZeroMQ": ["Messaging", "House", "Benchmarks"],
        "CMagickWand": ["Imaging"],
        "CHeif": ["Imaging"],
        "CJXL": ["Imaging", "Metadata"],
        "CPixels": ["Imaging"],
        "CMetadata": ["Metadata"],
        "CGExiv2": ["CMetadata"],
        "CJPEG": ["Imaging", "Metadata"],
        "CLibJPEG": ["CJPEG"],
        "CCrypto": ["Basics"],
        "CProcess": ["Hosting", "Storage"],
        "CAcceptLimit": ["Hosting"],
    ]

    @Test func `the manifest is parsed`() throws {
        let names = house.manifest.rooms.map(\.name)
        #expect(names.count > 20)
        #expect(Set(names).count == names.count)
        #expect(house.manifest.room("PhotoClient")?.leansOn.contains("Contracts") == true)
        #expect(house.manifest.room("HouseTests")?.leansOn.contains("Catalog") == true)
        #expect(house.manifest.room("CommandLine")?.path == "Services/CommandLine")
    }

    @Test func `a module depends only on lower layers`() throws {
        for room in house.manifest.rooms {
            for support in room.leansOn {
                guard let below = house.manifest.room(support), !below.isSystemLibrary else { continue }
                #expect(below.floor < room.floor, "\(room.name) depends on \(support)")
            }
        }
    }

    @Test func `a module imports only what the manifest declares`() throws {
        for file in house.files {
            let room = try #require(house.manifest.room(file.room))
            let allowed = room.leansOn.union(Self.standard).union(room.path.hasPrefix("Tests/") ? ["Testing"] : [])
            let strange = file.imports.subtracting(allowed).sorted()
            #expect(strange.isEmpty, "\(file.path) imports \(strange.joined(separator: ", "))")
        }
    }

    @Test func `C libraries are imported only by their own modules`() throws {
        for file in house.files {
            for (module, rooms) in Self.homes where file.imports.contains(module) {
                let home = file.room.hasSuffix("Tests") ? String(file.room.dropLast(5)) : file.room
                #expect(rooms.contains(home), "\(file.path) imports \(module)")
            }
        }
    }

    @Test func `only Storage and the Store and Schema files of services import GRDB`() throws {
        for file in house.productFiles where file.imports.contains("GRDB") {
            #expect(file.room == "Storage" || Manners.mayHoldSQL(file), "\(file.path) imports GRDB")
        }
    }

    @Test func `every folder is a room and every room a folder`() throws {
        let besides: [String: Set<String>] = ["Services": [], "Shared": ["docs", "python"], "Tests": []]
        for (folder, others) in besides {
            let planned = house.manifest.rooms.filter { $0.path.hasPrefix("\(folder)/") }.map(\.name)
            let found = Set(try house.names(in: folder)).subtracting(others)
            let strays = found.symmetricDifference(planned).sorted()
            #expect(strays.isEmpty, "\(folder): \(strays.joined(separator: ", ")) is a folder or a module, not both")
        }
    }

    @Test func `the top level contains only the agreed names`() throws {
        let allowed: Set<String> = ["Package.swift", "Services", "Shared", "Tests", "compose", "Makefile", "README.md"]
        // Ignored by git: the pinned package versions, and the output of `make demo`.
        let left: Set<String> = ["Package.resolved", "demo"]
        #expect(Set(try house.names(in: "")).subtracting(allowed).subtracting(left).isEmpty)
    }

    @Test func `the page about the architecture has every module in its table`() throws {
        let page = try String(contentsOf: house.root.appending(path: "Shared/docs/architecture.md"), encoding: .utf8)
        let table = page.split(separator: "\n").filter { $0.hasPrefix("|") }.joined(separator: "\n")
        let missing = house.manifest.rooms.filter { !$0.isTests && !table.contains("`\($0.name)`") }.map(\.name)
        #expect(missing.isEmpty, "architecture.md does not name \(missing.joined(separator: ", "))")
    }
}

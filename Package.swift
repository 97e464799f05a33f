// swift-tools-version: 6.2
import PackageDescription

// The module table. Each line is one module: its layer, its folder, and the modules it depends on. A module depends
// only on lower layers; the manifest stops the build at a dependency on the same or a higher layer. README.md describes
// the modules.

// MARK: - Packages

let packages: [String: (url: String, version: Version, products: [String])] = [
    "swift-argument-parser": ("https://github.com/apple/swift-argument-parser", "1.8.2", ["ArgumentParser"]),
    "swift-log": ("https://github.com/apple/swift-log", "1.16.2", ["Logging"]),
    "swift-collections": (
        "https://github.com/apple/swift-collections", "1.6.0", ["DequeModule", "OrderedCollections"]
    ),
    "swift-service-lifecycle": (
        "https://github.com/swift-server/swift-service-lifecycle", "2.13.0", ["ServiceLifecycle"]
    ),
    "swift-subprocess": ("https://github.com/swiftlang/swift-subprocess", "1.0.2", ["Subprocess"]),
    "swift-system": ("https://github.com/apple/swift-system", "1.8.1", ["SystemPackage"]),
    "GRDB.swift": ("https://github.com/groue/GRDB.swift", "7.10.0", ["GRDB"]),
]

// MARK: - Modules

enum Kind { case library, c, system(pkgConfig: String?, apt: String), program(name: String), support, tests, bench }

struct Room {
    let floor: Int
    let name: String
    let kind: Kind
    let leansOn: [String]

    init(_ floor: Int, _ name: String, _ kind: Kind = .library, _ leansOn: [String] = []) {
        self.floor = floor
        self.name = name
        self.kind = kind
        self.leansOn = leansOn
    }

    var path: String {
        switch kind {
        case .program: "Services/\(name)"
        case .support, .tests, .bench: "Tests/\(name)"
        case .library, .c, .system: "Shared/\(name)"
        }
    }
}

let programs = ["Catalog", "Thumbnailer", "ChangeBroker", "Editor", "CommandLine"]

let rooms: [Room] = [
    // Layer 0, foundation: C libraries behind small headers, JSON, and primitives for time and concurrency
    Room(0, "CZeroMQ", .system(pkgConfig: nil, apt: "libzmq3-dev")),
    Room(0, "CMagickWand", .system(pkgConfig: "MagickWand", apt: "libmagickwand-dev")),
    Room(0, "CGExiv2", .system(pkgConfig: "gexiv2", apt: "libgexiv2-dev")),
    Room(0, "CLibJPEG", .system(pkgConfig: "libjpeg", apt: "libjpeg-dev")),
    Room(0, "CHeif", .system(pkgConfig: nil, apt: "libheif-dev")),
    Room(0, "CJXL", .system(pkgConfig: nil, apt: "libjxl-dev")),
    Room(0, "CLibRaw", .system(pkgConfig: "libraw", apt: "libraw-dev")),
    Room(0, "CCrypto", .system(pkgConfig: "libcrypto", apt: "libssl-dev")),
    Room(0, "CMetadata", .c, ["CGExiv2"]),
    Room(0, "CRaw", .c, ["CLibRaw"]),
    Room(0, "CJPEG", .c, ["CLibJPEG"]),
    Room(0, "CPixels", .c),
    Room(0, "CProcess", .c),
    Room(0, "CAcceptLimit", .c),
    Room(0, "JSONValue"),
    Room(0, "Basics", .library, ["CCrypto"]),

    // Layer 1, model: values only
    Room(1, "SamplePictures"),
    Room(1, "PhotoModel", .library, ["JSONValue"]),
    Room(1, "PictureFormats"),

    // Layer 2, subsystems: none depends on another
    Room(2, "Messaging", .library, ["CZeroMQ", "JSONValue", "Logging", "DequeModule"]),
    Room(
        2,
        "Imaging",
        .library,
        ["CMagickWand", "CHeif", "CJXL", "CJPEG", "CPixels", "CRaw", "PictureFormats", "PhotoModel", "JSONValue"]
    ),
    Room(2, "Metadata", .library, ["CMetadata", "CJPEG", "CJXL", "PictureFormats", "PhotoModel", "JSONValue"]),
    Room(2, "Storage", .library, ["GRDB", "Basics", "Logging", "CProcess"]),

    // Layer 3, protocol: every request, response, feed message and error, defined once
    Room(3, "Contracts", .library, ["PhotoModel", "Messaging", "JSONValue"]),

    // Layer 4, clients: typed calls, and what all programs share
    Room(
        4,
        "PhotoClient",
        .library,
        [
            "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging", "Basics", "SystemPackage", "DequeModule",
        ]
    ),
    Room(
        4,
        "Hosting",
        .library,
        [
            "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "CProcess", "CAcceptLimit", "Logging",
            "ArgumentParser", "ServiceLifecycle", "DequeModule",
        ]
    ),

    // Layer 5, programs
    Room(
        5,
        "Catalog",
        .program(name: "catalog"),
        [
            "Hosting", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "Metadata", "GRDB", "Basics",
            "Logging", "ArgumentParser", "ServiceLifecycle", "DequeModule",
        ]
    ),
    Room(
        5,
        "Thumbnailer",
        .program(name: "thumbnailer"),
        [
            "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "Imaging",
            "Basics", "Logging", "ArgumentParser", "ServiceLifecycle",
        ]
    ),
    Room(
        5,
        "ChangeBroker",
        .program(name: "change-broker"),
        [
            "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging", "ArgumentParser",
            "ServiceLifecycle", "DequeModule", "Basics",
        ]
    ),
    Room(
        5,
        "Editor",
        .program(name: "editor"),
        [
            "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "Imaging",
            "Metadata",
            "Logging", "ArgumentParser", "ServiceLifecycle",
        ]
    ),
    Room(
        5,
        "CommandLine",
        .program(name: "safelight"),
        [
            "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging", "ArgumentParser",
            "Subprocess", "SystemPackage", "SamplePictures", "Basics",
        ]
    ),
    Room(
        5,
        "TestSupport",
        .support,
        [
            "PhotoClient", "Contracts", "Messaging", "PhotoModel", "SamplePictures", "JSONValue", "Logging",
            "Subprocess", "SystemPackage",
        ]
    ),

    // Layer 6, tests
    Room(6, "BasicsTests", .tests, ["Basics", "TestSupport"]),
    Room(6, "JSONValueTests", .tests, ["JSONValue", "TestSupport"]),
    Room(6, "PhotoModelTests", .tests, ["PhotoModel", "JSONValue", "TestSupport"]),
    Room(6, "MessagingTests", .tests, ["Messaging", "JSONValue", "TestSupport", "CZeroMQ", "Logging"]),
    Room(
        6,
        "ImagingTests",
        .tests,
        ["Imaging", "PictureFormats", "PhotoModel", "JSONValue", "SamplePictures", "TestSupport"]
    ),
    Room(
        6,
        "MetadataTests",
        .tests,
        ["Metadata", "PictureFormats", "PhotoModel", "JSONValue", "SamplePictures", "TestSupport"]
    ),
    Room(6, "StorageTests", .tests, ["Storage", "TestSupport", "GRDB"]),
    Room(6, "ContractsTests", .tests, ["Contracts", "Messaging", "PhotoModel", "JSONValue", "TestSupport"]),
    Room(
        6,
        "HostingTests",
        .tests,
        [
            "Hosting", "Contracts", "Messaging", "JSONValue", "Storage", "CProcess", "Logging", "ArgumentParser",
            "ServiceLifecycle", "TestSupport",
        ]
    ),
    Room(
        6,
        "PhotoClientTests",
        .tests,
        ["PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging", "Basics", "TestSupport"]
    ),
    Room(
        6,
        "CatalogTests",
        .tests,
        [
            "Catalog", "Hosting", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "GRDB", "Logging",
            "ServiceLifecycle", "SamplePictures", "TestSupport",
        ]
    ),
    Room(
        6,
        "ChangeBrokerTests",
        .tests,
        [
            "ChangeBroker", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging",
            "TestSupport",
        ]
    ),
    Room(
        6,
        "ThumbnailerTests",
        .tests,
        [
            "Thumbnailer", "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage",
            "Imaging", "PictureFormats", "SamplePictures", "Logging", "ArgumentParser", "TestSupport",
        ]
    ),
    Room(
        6,
        "EditorTests",
        .tests,
        [
            "Editor", "Thumbnailer", "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue",
            "Storage", "Imaging", "Metadata", "Logging", "ArgumentParser", "TestSupport",
        ]
    ),
    Room(
        6,
        "CommandLineTests",
        .tests,
        [
            "CommandLine", "Hosting", "Contracts", "PhotoModel", "JSONValue", "ArgumentParser", "SystemPackage",
            "TestSupport",
        ]
    ),
    Room(
        6,
        "HouseTests",
        .tests,
        [
            "TestSupport", "PhotoClient", "Hosting", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging",
            "PictureFormats", "CZeroMQ", "Basics", "ArgumentParser",
        ] + programs
    ),
    Room(6, "TidyTests", .tests, ["TestSupport"]),
    Room(
        6,
        "Benchmarks",
        .bench,
        [
            "TestSupport", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Imaging", "GRDB",
            "CZeroMQ", "Logging", "ArgumentParser",
        ]
    ),
]

// MARK: - Layer rules and build settings

let floors = Dictionary(uniqueKeysWithValues: rooms.map { ($0.name, $0.floor) })
/// Headers of installed libraries. Every module may use them, including those of the same layer.
let systemLibraries = Set(rooms.compactMap { if case .system = $0.kind { $0.name } else { nil } })

for room in rooms {
    for support in room.leansOn where !systemLibraries.contains(support) {
        guard let floor = floors[support] else { continue }
        if floor >= room.floor {
            fatalError("\(room.name) (layer \(room.floor)) must not depend on \(support) (layer \(floor))")
        }
    }
}

let house: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

func dependency(_ name: String) -> Target.Dependency {
    if floors[name] != nil { return .target(name: name) }
    guard let package = packages.first(where: { $0.value.products.contains(name) }) else {
        fatalError("no module and no package provides \(name)")
    }
    return .product(name: name, package: package.key)
}

func target(_ room: Room) -> Target {
    let dependencies = room.leansOn.map(dependency)
    switch room.kind {
    case .library, .support:
        return .target(name: room.name, dependencies: dependencies, path: room.path, swiftSettings: house)
    case .c:
        // Loops over pixels should be fast in debug builds too.
        return .target(
            name: room.name,
            dependencies: dependencies,
            path: room.path,
            cSettings: room.name == "CPixels" ? [.unsafeFlags(["-O2", "-fno-math-errno"])] : []
        )
    case .system(let pkgConfig, let apt):
        return .systemLibrary(name: room.name, path: room.path, pkgConfig: pkgConfig, providers: [.apt([apt])])
    case .program, .bench:
        return .executableTarget(name: room.name, dependencies: dependencies, path: room.path, swiftSettings: house)
    case .tests:
        return .testTarget(name: room.name, dependencies: dependencies, path: room.path, swiftSettings: house)
    }
}

func product(_ room: Room) -> Product? {
    guard case .program(let name) = room.kind else { return nil }
    return .executable(name: name, targets: [room.name])
}

let package = Package(
    name: "safelight",
    products: rooms.compactMap(product),
    dependencies: packages.sorted { $0.key < $1.key }.map { .package(url: $0.value.url, from: $0.value.version) },
    targets: rooms.map(target)
)

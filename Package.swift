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

enum Kind {
    case library, c, system(pkgConfig: String?, apt: String), support, tests, bench
    /// With `isLinked` the program is a library and an executable of its file Program.swift, because the package manager
    /// does not link an executable into another one.
    case program(name: String, isLinked: Bool = false)
}

struct Module {
    let layer: Int
    let name: String
    let kind: Kind
    let dependencies: [String]

    init(_ layer: Int, _ name: String, _ kind: Kind = .library, _ dependencies: [String] = []) {
        self.layer = layer
        self.name = name
        self.kind = kind
        self.dependencies = dependencies
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

let modules: [Module] = [
    // Layer 0, foundation: C libraries behind small headers, JSON, and primitives for time and concurrency
    Module(0, "CZeroMQ", .system(pkgConfig: nil, apt: "libzmq3-dev")),
    Module(0, "CMagickWand", .system(pkgConfig: "MagickWand", apt: "libmagickwand-dev")),
    Module(0, "CGExiv2", .system(pkgConfig: "gexiv2", apt: "libgexiv2-dev")),
    Module(0, "CLibJPEG", .system(pkgConfig: "libjpeg", apt: "libjpeg-dev")),
    Module(0, "CHeif", .system(pkgConfig: nil, apt: "libheif-dev")),
    Module(0, "CJXL", .system(pkgConfig: nil, apt: "libjxl-dev")),
    Module(0, "CLibRaw", .system(pkgConfig: "libraw", apt: "libraw-dev")),
    Module(0, "CCrypto", .system(pkgConfig: "libcrypto", apt: "libssl-dev")),
    Module(0, "CMetadata", .c, ["CGExiv2"]),
    Module(0, "CRaw", .c, ["CLibRaw"]),
    Module(0, "CJPEG", .c, ["CLibJPEG"]),
    Module(0, "CPixels", .c),
    Module(0, "CProcess", .c),
    Module(0, "CAcceptLimit", .c),
    Module(0, "JSONValue"),
    Module(0, "Basics", .library, ["CCrypto"]),

    // Layer 1, model: values only
    Module(1, "SamplePhotos"),
    Module(1, "PhotoModel", .library, ["JSONValue"]),
    Module(1, "ImageFormats"),

    // Layer 2, subsystems: none depends on another
    Module(2, "Messaging", .library, ["CZeroMQ", "JSONValue", "Basics", "Logging", "DequeModule"]),
    Module(
        2,
        "Imaging",
        .library,
        ["CMagickWand", "CHeif", "CJXL", "CJPEG", "CPixels", "CRaw", "ImageFormats", "PhotoModel", "JSONValue"]
    ),
    Module(2, "Metadata", .library, ["CMetadata", "CJPEG", "CJXL", "ImageFormats", "PhotoModel", "JSONValue"]),
    Module(2, "Storage", .library, ["GRDB", "Basics", "Logging", "CProcess"]),

    // Layer 3, protocol: every request, response, feed message and error, defined once
    Module(3, "Contracts", .library, ["PhotoModel", "Messaging", "JSONValue", "Basics"]),

    // Layer 4, clients: typed calls, and what all programs share
    Module(
        4,
        "PhotoClient",
        .library,
        [
            "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging", "Basics", "SystemPackage", "DequeModule",
        ]
    ),
    Module(
        4,
        "Hosting",
        .library,
        [
            "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "CProcess", "CAcceptLimit", "Logging",
            "ArgumentParser", "ServiceLifecycle", "DequeModule", "Basics",
        ]
    ),

    // Layer 5, programs
    Module(
        5,
        "Catalog",
        .program(name: "catalog", isLinked: true),
        [
            "Hosting", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "Metadata", "GRDB", "Basics",
            "Logging", "ArgumentParser", "ServiceLifecycle", "DequeModule",
        ]
    ),
    Module(
        5,
        "Thumbnailer",
        .program(name: "thumbnailer"),
        [
            "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "Imaging",
            "Basics", "Logging", "ArgumentParser", "ServiceLifecycle",
        ]
    ),
    Module(
        5,
        "ChangeBroker",
        .program(name: "change-broker"),
        [
            "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging", "ArgumentParser",
            "ServiceLifecycle", "DequeModule", "Basics",
        ]
    ),
    Module(
        5,
        "Editor",
        .program(name: "editor"),
        [
            "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "Imaging",
            "Metadata", "Basics", "Logging", "ArgumentParser", "ServiceLifecycle",
        ]
    ),
    Module(
        5,
        "CommandLine",
        .program(name: "safelight"),
        [
            "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging", "ArgumentParser",
            "Subprocess", "SystemPackage", "SamplePhotos", "Basics",
        ]
    ),
    Module(
        5,
        "TestSupport",
        .support,
        [
            "PhotoClient", "Contracts", "Messaging", "PhotoModel", "SamplePhotos", "JSONValue", "Basics", "Logging",
        ]
    ),

    // Layer 6, tests
    Module(6, "BasicsTests", .tests, ["Basics", "TestSupport"]),
    Module(6, "JSONValueTests", .tests, ["JSONValue", "TestSupport"]),
    Module(6, "PhotoModelTests", .tests, ["PhotoModel", "JSONValue", "TestSupport"]),
    Module(6, "MessagingTests", .tests, ["Messaging", "JSONValue", "Basics", "TestSupport", "CZeroMQ", "Logging"]),
    Module(
        6,
        "ImagingTests",
        .tests,
        ["Imaging", "ImageFormats", "PhotoModel", "JSONValue", "SamplePhotos", "TestSupport"]
    ),
    Module(
        6,
        "MetadataTests",
        .tests,
        ["Metadata", "ImageFormats", "PhotoModel", "JSONValue", "SamplePhotos", "TestSupport"]
    ),
    Module(6, "StorageTests", .tests, ["Storage", "TestSupport", "GRDB"]),
    Module(6, "ContractsTests", .tests, ["Contracts", "Messaging", "PhotoModel", "JSONValue", "TestSupport"]),
    Module(
        6,
        "HostingTests",
        .tests,
        [
            "Hosting", "Contracts", "Messaging", "JSONValue", "Storage", "CProcess", "Logging", "ArgumentParser",
            "ServiceLifecycle", "Basics", "TestSupport",
        ]
    ),
    Module(
        6,
        "PhotoClientTests",
        .tests,
        ["PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging", "Basics", "TestSupport"]
    ),
    Module(
        6,
        "CatalogTests",
        .tests,
        [
            "Catalog", "Hosting", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "GRDB", "Logging",
            "ServiceLifecycle", "SamplePhotos", "Basics", "TestSupport",
        ]
    ),
    Module(
        6,
        "ChangeBrokerTests",
        .tests,
        [
            "ChangeBroker", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging",
            "Basics", "TestSupport",
        ]
    ),
    Module(
        6,
        "ThumbnailerTests",
        .tests,
        [
            "Thumbnailer", "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage",
            "Imaging", "ImageFormats", "SamplePhotos", "Basics", "Logging", "ArgumentParser", "TestSupport",
        ]
    ),
    Module(
        6,
        "EditorTests",
        .tests,
        [
            "Editor", "Thumbnailer", "Hosting", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue",
            "Storage", "Imaging", "Metadata", "Basics", "Logging", "ArgumentParser", "TestSupport",
        ]
    ),
    Module(
        6,
        "CommandLineTests",
        .tests,
        [
            "CommandLine", "Hosting", "Contracts", "PhotoModel", "JSONValue", "ArgumentParser", "SystemPackage",
            "TestSupport",
        ]
    ),
    Module(
        6,
        "SystemTests",
        .tests,
        [
            "TestSupport", "PhotoClient", "Hosting", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Logging",
            "ImageFormats", "CZeroMQ", "Basics", "ArgumentParser",
        ] + programs
    ),
    Module(6, "TidyTests", .tests, ["TestSupport"]),
    Module(
        6,
        "Benchmarks",
        .bench,
        [
            "Catalog", "TestSupport", "PhotoClient", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Imaging",
            "GRDB", "CZeroMQ", "Basics", "Logging", "ArgumentParser",
        ]
    ),
]

// MARK: - Layer rules and build settings

let layers = Dictionary(uniqueKeysWithValues: modules.map { ($0.name, $0.layer) })
/// Headers of installed libraries. Every module may use them, including those of the same layer.
let systemLibraries = Set(modules.compactMap { if case .system = $0.kind { $0.name } else { nil } })

for module in modules {
    for dependency in module.dependencies where !systemLibraries.contains(dependency) {
        guard let layer = layers[dependency] else { continue }
        if layer >= module.layer {
            fatalError("\(module.name) (layer \(module.layer)) must not depend on \(dependency) (layer \(layer))")
        }
    }
}

let commonSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

/// Debug builds of this package optimize its loops over pixels, because its tests render large images; unoptimized they
/// take ten times as long. A package that depends on this one may not get unsafe flags, and does not need them: release
/// builds use none.
let optimizedDebugSettings: [CSetting] =
    Context.packageDirectory.contains("/checkouts/") ? [] : [.unsafeFlags(["-O2"], .when(configuration: .debug))]

func targetDependency(_ name: String) -> Target.Dependency {
    if layers[name] != nil { return .target(name: name) }
    guard let package = packages.first(where: { $0.value.products.contains(name) }) else {
        fatalError("no module and no package provides \(name)")
    }
    return .product(name: name, package: package.key)
}

func targets(_ module: Module) -> [Target] {
    guard case .program(_, isLinked: true) = module.kind else { return [target(module)] }
    return [
        .target(
            name: module.name,
            dependencies: module.dependencies.map(targetDependency),
            path: module.path,
            exclude: ["Program.swift"],
            swiftSettings: commonSettings
        ),
        .executableTarget(
            name: executable(module),
            dependencies: [.target(name: module.name)],
            path: module.path,
            sources: ["Program.swift"],
            swiftSettings: commonSettings
        ),
    ]
}

func target(_ module: Module) -> Target {
    let dependencies = module.dependencies.map(targetDependency)
    switch module.kind {
    case .library, .support:
        return .target(name: module.name, dependencies: dependencies, path: module.path, swiftSettings: commonSettings)
    case .c:
        return .target(
            name: module.name,
            dependencies: dependencies,
            path: module.path,
            cSettings: module.name == "CPixels" ? optimizedDebugSettings : []
        )
    case .system(let pkgConfig, let apt):
        return .systemLibrary(name: module.name, path: module.path, pkgConfig: pkgConfig, providers: [.apt([apt])])
    case .program, .bench:
        return .executableTarget(
            name: module.name,
            dependencies: dependencies,
            path: module.path,
            swiftSettings: commonSettings
        )
    case .tests:
        return .testTarget(
            name: module.name,
            dependencies: dependencies,
            path: module.path,
            swiftSettings: commonSettings
        )
    }
}

/// Returns the name of a program's executable target.
func executable(_ module: Module) -> String {
    if case .program(_, isLinked: true) = module.kind { return module.name + "Program" }
    return module.name
}

func product(_ module: Module) -> Product? {
    guard case .program(let name, _) = module.kind else { return nil }
    return .executable(name: name, targets: [executable(module)])
}

let package = Package(
    name: "safelight",
    products: modules.compactMap(product),
    dependencies: packages.sorted { $0.key < $1.key }.map { .package(url: $0.value.url, from: $0.value.version) },
    targets: modules.flatMap(targets)
)

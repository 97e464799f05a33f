// swift-tools-version: 6.2
import PackageDescription

// The module table. Each line is one module: its layer, its folder, and the modules it depends on, all of lower layers,
// or the manifest stops the build. Shared/docs/architecture.md describes the modules.

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
    "GRDB.swift": ("https://github.com/groue/GRDB.swift", "7.10.0", ["GRDB", "GRDBSQLite"]),
]

// MARK: - Modules

enum Kind {
    case library, c, system(pkgConfig: String?, apt: String), support, tests, bench
    /// The sources of a package of its own in a folder, built here too so that each build compiles them.
    case sample(folder: String)
    /// With `isLinked` the program is a library and an executable of its file Program.swift, because the package manager
    /// does not link an executable into another one.
    case program(name: String, isLinked: Bool = false)
}

struct Module {
    let layer: Int
    let name: String
    let kind: Kind
    let dependencies: [String]

    init(layer: Int, name: String, kind: Kind = .library, dependencies: [String] = []) {
        self.layer = layer
        self.name = name
        self.kind = kind
        self.dependencies = dependencies
    }

    var path: String {
        switch kind {
        case .program: "Services/\(name)"
        case .support, .tests, .bench: "Tests/\(name)"
        case .sample(let folder): "\(folder)/Sources"
        case .library, .c, .system: "Shared/\(name)"
        }
    }
}

let programs = ["Catalog", "Thumbnailer", "ChangeBroker", "Editor", "CommandLine"]
/// The modules of everything that speaks the protocol.
let protocolModules = ["Contracts", "Messaging", "PhotoModel", "JSONValue"]
/// The modules of every service.
let serviceModules = protocolModules + ["Hosting", "Basics", "Logging", "ArgumentParser", "ServiceLifecycle"]

let modules: [Module] = [
    // Layer 0, foundation: C libraries behind small headers, JSON, and primitives for time and concurrency
    Module(layer: 0, name: "CZeroMQ", kind: .system(pkgConfig: nil, apt: "libzmq3-dev")),
    Module(layer: 0, name: "CMagickWand", kind: .system(pkgConfig: "MagickWand", apt: "libmagickwand-dev")),
    Module(layer: 0, name: "CExiv2", kind: .system(pkgConfig: "exiv2", apt: "libexiv2-dev")),
    Module(layer: 0, name: "CLibJPEG", kind: .system(pkgConfig: "libjpeg", apt: "libjpeg-dev")),
    Module(layer: 0, name: "CHeif", kind: .system(pkgConfig: nil, apt: "libheif-dev")),
    Module(layer: 0, name: "CAVIF", kind: .system(pkgConfig: "libavif", apt: "libavif-dev")),
    Module(layer: 0, name: "CJXL", kind: .system(pkgConfig: nil, apt: "libjxl-dev")),
    Module(layer: 0, name: "CLibRaw", kind: .system(pkgConfig: "libraw", apt: "libraw-dev")),
    Module(layer: 0, name: "CRaqm", kind: .system(pkgConfig: "raqm", apt: "libraqm-dev")),
    Module(layer: 0, name: "CSixel", kind: .system(pkgConfig: "libsixel", apt: "libsixel-dev")),
    Module(layer: 0, name: "CZlib", kind: .system(pkgConfig: nil, apt: "zlib1g-dev")),
    Module(layer: 0, name: "CCrypto", kind: .system(pkgConfig: "libcrypto", apt: "libssl-dev")),
    Module(layer: 0, name: "CCurl", kind: .system(pkgConfig: "libcurl", apt: "libcurl4-openssl-dev")),
    Module(layer: 0, name: "CPQ", kind: .system(pkgConfig: "libpq", apt: "libpq-dev")),
    Module(layer: 0, name: "CLinux", kind: .system(pkgConfig: nil, apt: "libc6-dev")),
    Module(layer: 0, name: "CMetadata", kind: .c, dependencies: ["CExiv2"]),
    Module(layer: 0, name: "CTimeZones", kind: .c),
    Module(layer: 0, name: "CPlaceNames", kind: .c),
    Module(layer: 0, name: "CRaw", kind: .c, dependencies: ["CLibRaw"]),
    Module(layer: 0, name: "CJPEG", kind: .c, dependencies: ["CLibJPEG"]),
    Module(layer: 0, name: "CPixels", kind: .c),
    Module(layer: 0, name: "CText", kind: .c, dependencies: ["CRaqm"]),
    Module(layer: 0, name: "CProcess", kind: .c),
    Module(layer: 0, name: "CAcceptLimit", kind: .c),
    Module(layer: 0, name: "CWriteAheadLog", kind: .c),
    Module(layer: 0, name: "JSONValue"),
    Module(layer: 0, name: "Basics", dependencies: ["CCrypto", "CLinux"]),

    // Layer 1, model: values only
    Module(layer: 1, name: "SamplePhotos"),
    Module(layer: 1, name: "CVideo", kind: .c, dependencies: ["CPixels"]),
    Module(layer: 1, name: "PhotoModel", dependencies: ["JSONValue"]),
    Module(layer: 1, name: "ImageFormats", dependencies: ["CZlib"]),

    // Layer 2, subsystems: none depends on another
    Module(layer: 2, name: "Messaging", dependencies: ["Basics", "CZeroMQ", "JSONValue", "Logging", "DequeModule"]),
    Module(
        layer: 2,
        name: "Imaging",
        dependencies: [
            "CMagickWand", "CHeif", "CAVIF", "CJXL", "CJPEG", "CPixels", "CRaw", "CText", "ImageFormats", "PhotoModel",
            "JSONValue", "Basics",
        ]
    ),
    Module(
        layer: 2,
        name: "Metadata",
        dependencies: [
            "CMetadata", "CTimeZones", "CPlaceNames", "CJPEG", "CJXL", "ImageFormats", "PhotoModel", "JSONValue",
            "Basics",
        ]
    ),
    Module(layer: 2, name: "Video", dependencies: ["CPixels", "CVideo", "ImageFormats"]),
    Module(layer: 2, name: "ObjectStorage", dependencies: ["Basics", "CCurl"]),
    Module(layer: 2, name: "Storage", dependencies: ["GRDB", "Basics", "Logging", "CProcess", "CWriteAheadLog"]),
    Module(layer: 2, name: "PostgreSQL", dependencies: ["CPQ", "Basics"]),

    // Layer 3, protocol: every request, response, feed message and error, defined once
    Module(layer: 3, name: "Contracts", dependencies: ["Basics", "PhotoModel", "Messaging", "JSONValue"]),

    // Layer 4, clients: typed calls, and what all programs share
    Module(
        layer: 4,
        name: "PhotoClient",
        dependencies: protocolModules + ["Logging", "Basics", "SystemPackage", "DequeModule"]
    ),
    Module(
        layer: 4,
        name: "Hosting",
        dependencies: protocolModules + [
            "Storage", "CProcess", "CAcceptLimit", "Logging", "ArgumentParser", "ServiceLifecycle", "DequeModule",
            "Basics",
        ]
    ),

    // Layer 5, programs, and the library product
    Module(
        layer: 5,
        name: "PhotoKit",
        dependencies: protocolModules + [
            "PhotoClient", "Logging", "Basics", "ImageFormats", "SystemPackage", "CJPEG",
        ]
    ),
    Module(
        layer: 5,
        name: "Catalog",
        kind: .program(name: "catalog", isLinked: true),
        dependencies: serviceModules + [
            "Storage", "PostgreSQL", "ObjectStorage", "Metadata", "Video", "ImageFormats", "GRDB", "GRDBSQLite",
            "DequeModule",
        ]
    ),
    Module(
        layer: 5,
        name: "Thumbnailer",
        kind: .program(name: "thumbnailer"),
        dependencies: serviceModules + ["PhotoClient", "Storage", "Imaging", "Video", "ImageFormats"]
    ),
    Module(
        layer: 5,
        name: "ChangeBroker",
        kind: .program(name: "change-broker"),
        dependencies: serviceModules + ["PhotoClient", "DequeModule"]
    ),
    Module(
        layer: 5,
        name: "Editor",
        kind: .program(name: "editor"),
        dependencies: serviceModules + [
            "PhotoClient", "Storage", "Imaging", "ImageFormats", "Metadata", "Video", "SystemPackage",
        ]
    ),
    Module(
        layer: 5,
        name: "CommandLine",
        kind: .program(name: "safelight"),
        dependencies: protocolModules + [
            "Hosting", "PhotoClient", "Logging", "ArgumentParser", "Subprocess", "SystemPackage", "SamplePhotos",
            "Basics", "ImageFormats", "DequeModule", "CSixel", "CProcess",
        ]
    ),
    Module(
        layer: 5,
        name: "TestSupport",
        kind: .support,
        dependencies: protocolModules + [
            "Basics", "PhotoClient", "PostgreSQL", "SamplePhotos", "Logging",
        ]
    ),

    // Layer 6, tests
    Module(layer: 6, name: "BasicsTests", kind: .tests, dependencies: ["Basics", "TestSupport"]),
    Module(layer: 6, name: "JSONValueTests", kind: .tests, dependencies: ["JSONValue", "TestSupport"]),
    Module(layer: 6, name: "PhotoModelTests", kind: .tests, dependencies: ["PhotoModel", "JSONValue", "TestSupport"]),
    Module(
        layer: 6,
        name: "MessagingTests",
        kind: .tests,
        dependencies: ["Basics", "Messaging", "JSONValue", "TestSupport", "CZeroMQ", "Logging"]
    ),
    Module(
        layer: 6,
        name: "ImagingTests",
        kind: .tests,
        dependencies: ["Imaging", "ImageFormats", "PhotoModel", "JSONValue", "SamplePhotos", "TestSupport", "Basics"]
    ),
    Module(
        layer: 6,
        name: "MetadataTests",
        kind: .tests,
        dependencies: ["Metadata", "ImageFormats", "PhotoModel", "JSONValue", "SamplePhotos", "TestSupport"]
    ),
    Module(layer: 6, name: "VideoTests", kind: .tests, dependencies: ["Video", "JSONValue", "TestSupport"]),
    Module(
        layer: 6,
        name: "ObjectStorageTests",
        kind: .tests,
        dependencies: ["ObjectStorage", "Basics", "TestSupport"]
    ),
    Module(
        layer: 6,
        name: "StorageTests",
        kind: .tests,
        dependencies: ["Storage", "TestSupport", "GRDB", "GRDBSQLite"]
    ),
    Module(layer: 6, name: "PostgreSQLTests", kind: .tests, dependencies: ["PostgreSQL", "TestSupport"]),
    Module(layer: 6, name: "ContractsTests", kind: .tests, dependencies: protocolModules + ["TestSupport"]),
    Module(
        layer: 6,
        name: "HostingTests",
        kind: .tests,
        dependencies: [
            "Hosting", "Contracts", "Messaging", "PhotoModel", "JSONValue", "Storage", "CProcess", "Logging",
            "ArgumentParser", "ServiceLifecycle", "Basics", "TestSupport",
        ]
    ),
    Module(
        layer: 6,
        name: "PhotoClientTests",
        kind: .tests,
        dependencies: protocolModules + ["PhotoClient", "Logging", "Basics", "TestSupport"]
    ),
    Module(
        layer: 6,
        name: "CatalogTests",
        kind: .tests,
        dependencies: protocolModules + [
            "Basics", "ImageFormats", "Catalog", "Hosting", "Metadata", "ObjectStorage", "PostgreSQL", "Storage",
            "GRDB", "Logging", "ServiceLifecycle", "SamplePhotos", "PhotoClient", "TestSupport",
        ]
    ),
    Module(
        layer: 6,
        name: "ChangeBrokerTests",
        kind: .tests,
        dependencies: protocolModules + ["Basics", "ChangeBroker", "PhotoClient", "Logging", "TestSupport"]
    ),
    Module(
        layer: 6,
        name: "ThumbnailerTests",
        kind: .tests,
        dependencies: protocolModules + [
            "Basics", "Thumbnailer", "Hosting", "PhotoClient", "Storage", "Imaging", "ImageFormats", "SamplePhotos",
            "Logging", "ArgumentParser", "TestSupport",
        ]
    ),
    Module(
        layer: 6,
        name: "EditorTests",
        kind: .tests,
        dependencies: protocolModules + [
            "Basics", "Editor", "Thumbnailer", "Hosting", "PhotoClient", "Storage", "Imaging", "ImageFormats",
            "Metadata", "Video", "Logging", "ArgumentParser", "TestSupport",
        ]
    ),
    Module(
        layer: 6,
        name: "CommandLineTests",
        kind: .tests,
        dependencies: [
            "CommandLine", "Hosting", "Contracts", "Messaging", "PhotoClient", "PhotoModel", "JSONValue",
            "ArgumentParser", "SystemPackage", "TestSupport", "Basics",
        ]
    ),
    Module(
        layer: 6,
        name: "SystemTests",
        kind: .tests,
        dependencies: protocolModules + [
            "TestSupport", "PhotoClient", "Hosting", "Logging", "ImageFormats", "CZeroMQ", "Basics", "ArgumentParser",
        ] + programs
    ),
    Module(layer: 6, name: "PhotoKitSample", kind: .sample(folder: "Tests/PhotoKitSample"), dependencies: ["PhotoKit"]),
    Module(
        layer: 6,
        name: "FollowAlbum",
        kind: .sample(folder: "compose/examples/follow_album"),
        dependencies: ["PhotoKit"]
    ),
    Module(
        layer: 6,
        name: "PhotoKitTests",
        kind: .tests,
        dependencies: protocolModules + ["PhotoKit", "PhotoClient", "Logging", "Basics", "TestSupport"]
    ),
    Module(layer: 6, name: "TidyTests", kind: .tests, dependencies: ["TestSupport"]),
    Module(
        layer: 6,
        name: "Benchmarks",
        kind: .bench,
        dependencies: protocolModules + [
            "Basics", "Catalog", "TestSupport", "PhotoClient", "PhotoKit", "Imaging", "Video", "GRDB", "CZeroMQ",
            "Logging", "ArgumentParser", "Hosting",
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

/// True if another package depends on this one: the package manager keeps its copy in one of these folders.
let isDependency = ["/checkouts/", "/registry/downloads/"].contains { Context.packageDirectory.contains($0) }

/// Debug builds optimize the C loops over pixels, because the tests render large images, and the modules that make the
/// images of the tests: unoptimized these take up to ten times as long. A package that others depend on may not have
/// unsafe flags and gets none.
let optimizedDebugC: [CSetting] = isDependency ? [] : [.unsafeFlags(["-O2"], .when(configuration: .debug))]
let optimizedDebugSwift: [SwiftSetting] =
    isDependency ? [] : [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]

/// Programs find the libraries of Swift in the folder into which `make install` copies them.
let programLinking: [LinkerSetting] =
    isDependency ? [] : [.unsafeFlags(["-Xlinker", "-rpath=$ORIGIN/../lib/safelight"], .when(configuration: .release))]

func targetDependency(_ name: String) -> Target.Dependency {
    if layers[name] != nil { return .target(name: name) }
    guard let package = packages.first(where: { $0.value.products.contains(name) }) else {
        fatalError("no module and no package provides \(name)")
    }
    return .product(name: name, package: package.key)
}

/// The modules that are optimized in debug builds too.
let optimizedModules: Set = ["CPixels", "CVideo", "SamplePhotos", "TestSupport"]
/// The tables of data that modules of C embed.
let tables = ["CTimeZones": "TimeZones.bin", "CPlaceNames": "PlaceNames.bin"]

func target(_ module: Module) -> Target {
    let dependencies = module.dependencies.map(targetDependency)
    switch module.kind {
    case .library, .support:
        return .target(
            name: module.name,
            dependencies: dependencies,
            path: module.path,
            swiftSettings: commonSettings + (optimizedModules.contains(module.name) ? optimizedDebugSwift : [])
        )
    case .c:
        return .target(
            name: module.name,
            dependencies: dependencies,
            path: module.path,
            exclude: tables[module.name].map { ["LICENSE", $0, "make-table.py"] } ?? [],
            cSettings: optimizedModules.contains(module.name) ? optimizedDebugC : []
        )
    case .system(let pkgConfig, let apt):
        return .systemLibrary(name: module.name, path: module.path, pkgConfig: pkgConfig, providers: [.apt([apt])])
    case .program, .bench, .sample:
        return .executableTarget(
            name: module.name,
            dependencies: dependencies,
            path: module.path,
            swiftSettings: commonSettings,
            linkerSettings: programLinking
        )
    case .tests:
        return .testTarget(
            name: module.name,
            dependencies: dependencies,
            path: module.path,
            // Python scripts, which the tests run.
            exclude: module.name == "SystemTests" ? ["Rows"] : [],
            swiftSettings: commonSettings
        )
    }
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
            swiftSettings: commonSettings,
            linkerSettings: programLinking
        ),
    ]
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
    products: modules.compactMap(product) + [.library(name: "PhotoKit", targets: ["PhotoKit"])],
    dependencies: packages.sorted { $0.key < $1.key }.map { .package(url: $0.value.url, from: $0.value.version) },
    targets: modules.flatMap(targets)
)

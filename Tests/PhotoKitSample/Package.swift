// swift-tools-version: 6.2
import PackageDescription

// A package as a user of PhotoKit has one. It depends on the repository by its path.
let package = Package(
    name: "photokit-sample",
    dependencies: [.package(name: "safelight", path: "../..")],
    targets: [
        .executableTarget(
            name: "PhotoKitSample",
            dependencies: [.product(name: "PhotoKit", package: "safelight")],
            path: "Sources",
            swiftSettings: [.treatAllWarnings(as: .error)]
        )
    ],
    swiftLanguageModes: [.v6]
)

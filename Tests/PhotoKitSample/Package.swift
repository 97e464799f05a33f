// swift-tools-version: 6.2
import PackageDescription

// A package of a user of PhotoKit. It depends on the repository by path.
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

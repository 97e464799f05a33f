// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "follow-album",
    dependencies: [.package(name: "safelight", path: "../../..")],
    targets: [
        .executableTarget(
            name: "FollowAlbum",
            dependencies: [.product(name: "PhotoKit", package: "safelight")],
            path: "Sources",
            swiftSettings: [.treatAllWarnings(as: .error)]
        )
    ],
    swiftLanguageModes: [.v6]
)

// swift-tools-version: 6.2
import PackageDescription

// What needs other packages, which the library itself does not. See README.md for what has been proven about it.
let package = Package(
    name: "Integrations",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "swift-messaging", path: "../.."),
        .package(url: "https://github.com/apple/swift-protobuf.git", from: "1.28.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.5.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
    ],
    targets: [
        .executableTarget(
            name: "protobuf-readings",
            dependencies: [
                .product(name: "MQTT", package: "swift-messaging"),
                .product(name: "LoopbackBroker", package: "swift-messaging"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ]),
        .executableTarget(
            name: "temperature-service",
            dependencies: [
                .product(name: "MQTT", package: "swift-messaging"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)

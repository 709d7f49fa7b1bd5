// swift-tools-version: 6.2
import PackageDescription

// What needs other packages, which the library itself does not. See README.md for what has been proven about it.

/// Both clients.
let clients = ["MQTT", "STOMP"].map { Target.Dependency.product(name: $0, package: "swift-messaging") }
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let tracing = Target.Dependency.product(name: "Tracing", package: "swift-distributed-tracing")
let services = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let broker = Target.Dependency.product(name: "LoopbackBroker", package: "swift-messaging")

let package = Package(
    name: "Integrations",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "MessagingLogging", targets: ["MessagingLogging"]),
        .library(name: "MessagingMetrics", targets: ["MessagingMetrics"]),
        .library(name: "MessagingTracing", targets: ["MessagingTracing"]),
        .library(name: "MessagingServices", targets: ["MessagingServices"]),
    ],
    dependencies: [
        .package(name: "swift-messaging", path: "../.."),
        .package(url: "https://github.com/apple/swift-protobuf.git", from: "1.39.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
    ],
    targets: [
        .target(name: "MessagingLogging", dependencies: clients + [logging]),
        .target(name: "MessagingMetrics", dependencies: clients + [metrics]),
        .target(name: "MessagingTracing", dependencies: clients + [tracing]),
        .target(name: "MessagingServices", dependencies: clients + [services]),
        .executableTarget(
            name: "protobuf-readings",
            dependencies: clients + [broker, .product(name: "SwiftProtobuf", package: "swift-protobuf")]),
        .executableTarget(
            name: "temperature-service",
            dependencies: clients + [
                "MessagingLogging", "MessagingMetrics", "MessagingServices", logging, metrics, services,
            ]),
        .testTarget(
            name: "IntegrationsTests",
            dependencies: clients + [
                "MessagingLogging", "MessagingMetrics", "MessagingTracing", "MessagingServices", broker, logging,
                metrics, tracing, services,
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)

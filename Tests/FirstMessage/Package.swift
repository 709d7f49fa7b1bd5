// swift-tools-version: 6.2
import PackageDescription

// A program that publishes one message, whose start and size are measured: a package of its own, as a user's program is.
// `swift build -c release --package-path Tests/FirstMessage --scratch-path .build` puts it beside the benchmarks.
let package = Package(
    name: "first-message",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "swift-messaging", path: "../..")],
    targets: [
        .executableTarget(
            name: "first-message", dependencies: [.product(name: "MQTT", package: "swift-messaging")], path: ".",
            sources: ["FirstMessage.swift"])
    ],
    swiftLanguageModes: [.v6]
)

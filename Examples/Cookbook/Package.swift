// swift-tools-version: 6.2
import PackageDescription

/// A program in the folder of its name.
func program(_ name: String, _ products: String...) -> Target {
    .executableTarget(
        name: name,
        dependencies: ["Recipe"] + products.map { .product(name: $0, package: "swift-messaging") })
}

let package = Package(
    name: "Cookbook",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "swift-messaging", path: "../..")],
    targets: [
        // What all programs share: options, standard input, and a broker for those that bring one along.
        .target(
            name: "Recipe",
            dependencies: ["LoopbackBroker", "MQTT"].map { .product(name: $0, package: "swift-messaging") }),

        program("publish", "MQTT"),
        program("subscribe", "MQTT"),
        program("request-reply", "MQTT", "STOMP"),
        program("order-worker", "STOMP"),
        program("bridge", "MQTT", "STOMP"),
        program("chat", "MQTT"),
        program("vehicle-positions", "MQTT"),
        program("smart-home", "MQTT"),
        program("view-model", "MQTT"),

        .testTarget(
            name: "ViewModelTests",
            dependencies: ["view-model"]
                + ["MQTT", "LoopbackBroker"].map { .product(name: $0, package: "swift-messaging") }),
    ],
    swiftLanguageModes: [.v6]
)

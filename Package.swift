// swift-tools-version: 6.2
import PackageDescription

/// With MESSAGING_FUZZING=1 in the environment, on Linux: everything is built with libFuzzer's coverage, and there is the
/// program `fuzzing` (Tests/Fuzzing). Use a scratch path of its own, since nothing else can be linked then.
///
/// The names are long because the environment is also that of every package that depends on this one.
#if os(Linux)
    let fuzzes = Context.environment["MESSAGING_FUZZING"] == "1"
#else
    let fuzzes = false
#endif
let coverage: [SwiftSetting] = fuzzes ? [.unsafeFlags(["-sanitize=fuzzer", "-enable-testing"])] : []

/// Settings that every Swift target shares.
let common: [SwiftSetting] =
    [
        // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0335-existential-any.md
        .enableUpcomingFeature("ExistentialAny"),
        // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0409-access-level-on-imports.md
        .enableUpcomingFeature("InternalImportsByDefault"),
        // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0444-member-import-visibility.md
        .enableUpcomingFeature("MemberImportVisibility"),
        // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0461-async-function-isolation.md
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0470-isolated-conformances.md
        .enableUpcomingFeature("InferIsolatedConformances"),
    ] + coverage

/// The library and the programs write `unsafe` wherever memory safety rests on reasoning that the compiler cannot check,
/// and say why it holds: beside the place, at the head of a function or, where all places of a type have the same reason,
/// at the type. Two kinds need no reason of their own: `span.bytes` of an array of bytes, which have no padding that
/// could be uninitialized; and system calls that are passed a variable with `&` or a string for the time of the call.
/// https://github.com/swiftlang/swift-evolution/blob/main/proposals/0458-strict-memory-safety.md
let strict: [SwiftSetting] = common + [.strictMemorySafety()]

/// With MESSAGING_FAKE_APPLE=1 in the environment, on Linux: Transport is built as on Apple's systems, over fakes of their
/// frameworks (Tests/AppleStubs). On Apple's systems, and without the variable, none of them exists.
#if os(Linux)
    let fakesApple = Context.environment["MESSAGING_FAKE_APPLE"] == "1"
#else
    let fakesApple = false
#endif
let appleFakes: [Target] =
    fakesApple
    ? [
        .target(name: "CoreFoundation", path: "Tests/AppleStubs/CoreFoundation", swiftSettings: common),
        .target(
            name: "Security", dependencies: ["CoreFoundation"], path: "Tests/AppleStubs/Security",
            swiftSettings: common),
        .target(
            name: "CommonCrypto", dependencies: ["Security"], path: "Tests/AppleStubs/CommonCrypto",
            swiftSettings: common),
        .target(name: "Network", dependencies: ["Security"], path: "Tests/AppleStubs/Network", swiftSettings: common),
    ] : []
let appleFrameworks: [Target.Dependency] = appleFakes.map { .target(name: $0.name) }

/// The program that `MESSAGING_FUZZING=1` adds.
let fuzzing: [Target] =
    fuzzes
    ? [
        .executableTarget(
            name: "fuzzing",
            dependencies: ["HTTPCore", "Inspector", "LoopbackBroker", "MQTTCore", "STOMPCore", "WebSocketCore"],
            path: "Tests/Fuzzing", swiftSettings: common,
            // Gold refuses our `main` beside libFuzzer's.
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])])
    ] : []

/// The two programs, which several test targets run.
let devices: [Target.Dependency] = ["locations-device", "motions-device"]

/// With TESTS=MQTTTests,BrokerTests in the environment, these test targets alone exist, which saves building the others.
let chosenTests = Context.environment["TESTS"]?.split(separator: ",").map { String($0) }

/// The test target in the folder `Tests/<subject>Tests`.
func tests(_ subject: String, with dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .testTarget(
        name: subject + "Tests", dependencies: dependencies + ["TestSupport"], exclude: exclude, swiftSettings: common)
}

/// The test target of one module.
func tests(of module: String, with dependencies: [Target.Dependency] = []) -> Target {
    tests(module, with: [.target(name: module)] + dependencies)
}

let package = Package(
    name: "swift-messaging",
    // watchOS, so that code shared with a watch app compiles: few of these can connect by themselves (README.md).
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "MQTT", targets: ["MQTT"]),
        .library(name: "STOMP", targets: ["STOMP"]),
        .library(name: "LoopbackBroker", targets: ["LoopbackBroker"]),
        .library(name: "Inspector", targets: ["Inspector"]),
        .library(name: "MQTTCore", targets: ["MQTTCore"]),
        .library(name: "STOMPCore", targets: ["STOMPCore"]),
        .executable(name: "locations-device", targets: ["locations-device"]),
        .executable(name: "motions-device", targets: ["motions-device"]),
    ],
    dependencies: [],
    targets: [
        // Pure cores: bytes and time in, bytes and events out.
        // `Lifetimes` is for Array+Span.swift alone: it writes down what a span borrows from.
        .target(name: "Wire", swiftSettings: strict + [.enableExperimentalFeature("Lifetimes")]),
        .target(name: "MQTTCore", dependencies: ["Wire"], swiftSettings: strict),
        .target(name: "STOMPCore", dependencies: ["Wire"], swiftSettings: strict),
        .target(name: "HTTPCore", dependencies: ["Wire"], swiftSettings: strict),
        .target(name: "WebSocketCore", dependencies: ["HTTPCore", "Wire"], swiftSettings: strict),

        // Every system call.
        .target(name: "CPosix"),
        .target(
            name: "Transport", dependencies: ["WebSocketCore", "HTTPCore", "Wire", "CPosix"] + appleFrameworks,
            swiftSettings: strict),

        // What people import.
        .target(name: "MessagingFrames", dependencies: ["Transport", "Wire"], swiftSettings: strict),
        .target(name: "Messaging", dependencies: ["MessagingFrames", "Transport", "Wire"], swiftSettings: strict),
        .target(
            name: "MQTTRecords", dependencies: ["MQTTCore", "MessagingFrames", "Transport", "Wire"],
            swiftSettings: strict),
        .target(
            name: "STOMPRecords", dependencies: ["STOMPCore", "MessagingFrames", "Transport", "Wire"],
            swiftSettings: strict),
        .target(name: "MQTTStores", dependencies: ["MQTTCore", "Transport", "Wire"], swiftSettings: strict),
        .target(
            name: "MQTT",
            dependencies: [
                "MQTTCore", "MQTTRecords", "MQTTStores", "Messaging", "MessagingFrames", "Transport", "Wire",
            ],
            swiftSettings: strict),
        .target(
            name: "STOMP",
            dependencies: ["STOMPCore", "STOMPRecords", "Messaging", "MessagingFrames", "Transport", "Wire"],
            swiftSettings: strict),
        .target(
            name: "MessagingSimulation", dependencies: ["MQTTCore", "Transport", "Wire"], swiftSettings: strict),
        .target(
            name: "LoopbackBroker",
            dependencies: ["MQTTCore", "MessagingSimulation", "STOMPCore", "Transport", "Wire"],
            swiftSettings: strict),

        .target(
            name: "Inspector", dependencies: ["HTTPCore", "Messaging", "MessagingFrames", "Transport", "Wire"],
            resources: [.embedInCode("Page")], swiftSettings: strict),

        // The two little programs.
        .target(
            name: "WebPages", path: "Examples/Pages", exclude: ["Screenshots"], resources: [.embedInCode("Files")],
            swiftSettings: strict),
        .target(
            name: "DeviceSupport",
            dependencies: ["HTTPCore", "Inspector", "LoopbackBroker", "Messaging", "Transport", "WebPages"],
            path: "Examples/Shared", swiftSettings: strict),
        .executableTarget(
            name: "locations-device", dependencies: ["STOMP", "LoopbackBroker", "DeviceSupport"],
            path: "Examples/locations-device", swiftSettings: strict),
        .executableTarget(
            name: "motions-device", dependencies: ["MQTT", "LoopbackBroker", "DeviceSupport", "Inspector"],
            path: "Examples/motions-device", swiftSettings: strict),

        // What tests share, and the programs that they run.
        .target(
            name: "TestSupport", dependencies: ["Transport"], path: "Tests/TestSupport", exclude: ["Certificates"],
            swiftSettings: common),
        .target(
            name: "ClientTestSupport", dependencies: ["Messaging", "TestSupport", "Transport"],
            path: "Tests/ClientTestSupport", swiftSettings: common),
        // Servers that misbehave, each with a client in a process of its own.
        .executableTarget(
            name: "hostile-servers", dependencies: ["MQTT", "STOMP", "WebSocketCore"], path: "Tests/HostileServers",
            swiftSettings: common),
        .executableTarget(
            name: "benchmarks",
            dependencies: ["MQTT", "MQTTCore", "Messaging", "STOMP", "STOMPCore", "LoopbackBroker", "Wire"],
            path: "Tests/Benchmarks", exclude: ["C", "RESULTS.md"], swiftSettings: common),

        // The tests of one module each.
        tests(of: "Wire"),
        tests(of: "MQTTCore", with: ["Wire"]),
        tests(of: "STOMPCore", with: ["Wire"]),
        tests(of: "HTTPCore", with: ["Wire"]),
        tests(of: "WebSocketCore", with: ["HTTPCore", "Wire"]),
        tests(of: "Transport", with: ["HTTPCore", "WebSocketCore", "Wire"] + appleFrameworks),
        tests(of: "Messaging", with: ["MessagingFrames", "Wire"]),
        tests(
            of: "MQTT",
            with: [
                "ClientTestSupport", "LoopbackBroker", "MQTTRecords", "MQTTStores", "Wire", "hostile-servers",
            ]),
        tests(
            of: "STOMP",
            with: ["ClientTestSupport", "HTTPCore", "LoopbackBroker", "STOMPRecords", "WebSocketCore", "Wire"]),
        tests(of: "LoopbackBroker", with: ["MQTT", "STOMP"]),
        tests(of: "Inspector", with: ["LoopbackBroker", "Messaging", "MQTT", "STOMP", "Wire"]),

        // Tests of several modules together.
        tests("Broker", with: ["MQTT", "STOMP"] + devices),
        // Whole clients in simulation. A target of its own, because campaigns and planted defects build it again and again.
        tests("World", with: ["LoopbackBroker", "MQTT", "MessagingSimulation", "STOMP"]),
        tests("Embedded", with: ["LoopbackBroker", "MQTT"], exclude: ["Checks"]),
        tests("Documentation", with: ["Inspector", "LoopbackBroker", "MQTT", "MQTTCore", "STOMP"]),
        tests("Migration", with: [], exclude: ["Calls"]),
        tests("Cookbook", with: ["LoopbackBroker", "MQTT", "STOMP"]),
        tests("Benchmark", with: ["benchmarks", "LoopbackBroker", "MQTT", "STOMP"]),
        tests("Device", with: ["DeviceSupport", "LoopbackBroker", "STOMP"] + devices, exclude: ["Recordings"]),
        tests(
            "Page", with: ["DeviceSupport", "Inspector", "LoopbackBroker", "MQTT", "STOMP", "WebPages"] + devices),
    ].filter { !$0.isTest || chosenTests?.contains($0.name) ?? true } + appleFakes + fuzzing,
    swiftLanguageModes: [.v6]
)

// swift-tools-version: 6.2
import PackageDescription

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
        library("MessagingWire", settings: [.enableExperimentalFeature("Lifetimes")]),
        library("MQTTCore", ["MessagingWire"]),
        library("STOMPCore", ["MessagingWire"]),
        library("MessagingHTTPCore", ["MessagingWire"]),
        library("MessagingWebSocketCore", ["MessagingHTTPCore", "MessagingWire"]),

        // Every system call.
        .target(name: "CMessagingPosix"),
        library(
            "Transport",
            ["CMessagingPosix", "MessagingHTTPCore", "MessagingWebSocketCore", "MessagingWire"] + appleFrameworks),

        // Beside the way of a packet: logs of frames and what they show, session stores, simulated worlds.
        library("MessagingFrames", ["Transport", "MessagingWire"]),
        library("MQTTRecords", ["MQTTCore", "MessagingFrames", "Transport", "MessagingWire"]),
        library("STOMPRecords", ["MessagingFrames", "STOMPCore", "Transport", "MessagingWire"]),
        library("MQTTStores", ["MQTTCore", "Transport", "MessagingWire"]),
        library(
            "MessagingSimulation", ["MQTTCore", "MessagingJudge", "STOMPCore", "Transport", "MessagingWire"]),
        library("MessagingJudge", ["MQTTCore", "STOMPCore", "MessagingWire"], exclude: ["ClientObligations.md"]),

        // What people import.
        library("MessagingShell", ["MessagingFrames", "Transport", "MessagingWire"]),
        library(
            "MQTT",
            [
                "MQTTCore", "MQTTRecords", "MQTTStores", "MessagingShell", "MessagingFrames", "Transport",
                "MessagingWire",
            ]),
        library(
            "STOMP", ["MessagingShell", "MessagingFrames", "STOMPCore", "STOMPRecords", "Transport", "MessagingWire"]),
        library(
            "LoopbackBroker",
            ["MQTTCore", "MessagingJudge", "MessagingSimulation", "STOMPCore", "Transport", "MessagingWire"]),
        library(
            "Inspector", ["MessagingHTTPCore", "MessagingShell", "MessagingFrames", "Transport", "MessagingWire"],
            resources: [.embedInCode("Page")]),
    ],
    swiftLanguageModes: [.v6]
)
package.targets += examples + testSupport + testTargets.filter(isChosen) + fakesOfApple + fuzzing

// MARK: What follows is for those who change this package.

/// The two little programs.
var examples: [Target] {
    [
        library(
            "MessagingWebPages", in: "Examples/Pages", exclude: ["Screenshots"], resources: [.embedInCode("Files")]),
        library(
            "MessagingDeviceSupport",
            ["MessagingHTTPCore", "Inspector", "LoopbackBroker", "MessagingShell", "Transport", "MessagingWebPages"],
            in: "Examples/Shared"),
        .executableTarget(
            name: "locations-device", dependencies: ["MessagingDeviceSupport", "LoopbackBroker", "STOMP"],
            path: "Examples/locations-device", swiftSettings: Settings.strict),
        .executableTarget(
            name: "motions-device", dependencies: ["MessagingDeviceSupport", "Inspector", "LoopbackBroker", "MQTT"],
            path: "Examples/motions-device", swiftSettings: Settings.strict),
    ]
}
/// The two programs, which several test targets run.
var devices: [Target.Dependency] { ["locations-device", "motions-device"] }

/// What tests share, and the programs that they run.
var testSupport: [Target] {
    [
        .target(
            name: "TestSupport", dependencies: ["Transport"], path: "Tests/TestSupport", exclude: ["Certificates"],
            swiftSettings: Settings.common),
        .target(
            name: "ClientTestSupport",
            dependencies: ["LoopbackBroker", "MessagingJudge", "MessagingShell", "TestSupport", "Transport"],
            path: "Tests/ClientTestSupport", swiftSettings: Settings.common),
        // Servers that misbehave, each with a client in a process of its own.
        .executableTarget(
            name: "hostile-servers", dependencies: ["MQTT", "STOMP", "MessagingWebSocketCore"],
            path: "Tests/HostileServers",
            swiftSettings: Settings.common),
        .executableTarget(
            name: "benchmarks",
            dependencies: [
                "LoopbackBroker", "MQTT", "MQTTCore", "MessagingShell", "STOMP", "STOMPCore", "MessagingWire",
            ],
            path: "Tests/Benchmarks", exclude: ["C", "RESULTS.md"], swiftSettings: Settings.common),
    ]
}

var testTargets: [Target] {
    [
        // The tests of one module each.
        tests(of: "MessagingWire"),
        tests(of: "MQTTCore", with: ["MessagingWire"]),
        tests(of: "STOMPCore", with: ["MessagingWire"]),
        tests(of: "MessagingJudge", with: ["MQTTCore", "STOMPCore", "MessagingWire"]),
        tests(of: "MessagingHTTPCore", with: ["MessagingWire"]),
        tests(of: "MessagingWebSocketCore", with: ["MessagingHTTPCore", "MessagingWire"]),
        tests(
            of: "Transport", with: ["MessagingHTTPCore", "MessagingWebSocketCore", "MessagingWire"] + appleFrameworks),
        tests(of: "MessagingShell", with: ["MessagingFrames", "MessagingWire"]),
        tests(
            of: "MQTT",
            with: [
                "ClientTestSupport", "LoopbackBroker", "MQTTRecords", "MQTTStores", "MessagingJudge", "MessagingWire",
                "hostile-servers",
            ]),
        tests(
            of: "STOMP",
            with: [
                "ClientTestSupport", "MessagingHTTPCore", "LoopbackBroker", "MessagingJudge", "STOMPRecords",
                "MessagingWebSocketCore", "MessagingWire",
            ]),
        tests(of: "LoopbackBroker", with: ["ClientTestSupport", "MQTT", "MessagingJudge", "STOMP"]),
        tests(
            of: "Inspector",
            with: ["ClientTestSupport", "LoopbackBroker", "MQTT", "MessagingShell", "STOMP", "MessagingWire"]),

        // Tests of several modules together.
        tests("Broker", with: ["MQTT", "STOMP"] + devices),
        // Whole clients in simulation. A target of its own, because campaigns and planted defects build it again and again.
        tests("World", with: ["LoopbackBroker", "MQTT", "MessagingJudge", "MessagingSimulation", "STOMP"]),
        tests("Embedded", with: ["LoopbackBroker", "MQTT"], exclude: ["Checks"]),
        tests(
            "Documentation",
            with: ["ClientTestSupport", "Inspector", "LoopbackBroker", "MQTT", "MQTTCore", "STOMP"]),
        tests("Migration", exclude: ["Calls"]),
        tests("Cookbook", with: ["ClientTestSupport", "LoopbackBroker", "MQTT", "STOMP"]),
        tests("Benchmark", with: ["LoopbackBroker", "MQTT", "STOMP", "benchmarks"]),
        tests(
            "Device",
            with: ["ClientTestSupport", "MessagingDeviceSupport", "MessagingJudge", "LoopbackBroker", "STOMP"]
                + devices,
            exclude: ["Recordings"]),
        tests(
            "Page",
            with: ["MessagingDeviceSupport", "Inspector", "LoopbackBroker", "MQTT", "STOMP", "MessagingWebPages"]
                + devices),
    ]
}

/// With TESTS=MQTTTests,BrokerTests in the environment, these test targets alone exist, which saves building the others.
func isChosen(_ tests: Target) -> Bool {
    Context.environment["TESTS"]?.split(separator: ",").contains { $0 == tests.name } ?? true
}

/// The test target in the folder `Tests/<subject>Tests`.
func tests(_ subject: String, with dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
    .testTarget(
        name: subject + "Tests", dependencies: dependencies + ["TestSupport"], exclude: exclude,
        swiftSettings: Settings.common)
}

/// The test target of one module.
func tests(of module: String, with dependencies: [Target.Dependency] = []) -> Target {
    tests(module, with: [.target(name: module)] + dependencies)
}

/// A target without tests or a `main`.
func library(
    _ name: String, _ dependencies: [Target.Dependency] = [], in path: String? = nil, exclude: [String] = [],
    resources: [Resource] = [], settings: [SwiftSetting] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: path, exclude: exclude, resources: resources,
        swiftSettings: Settings.strict + settings)
}

enum Settings {
    /// With MESSAGING_FUZZING=1 everything is built with libFuzzer's coverage, and there is the program `fuzzing`. Use a
    /// scratch path of its own, since nothing else can be linked then.
    static var fuzzes: Bool { isSet("MESSAGING_FUZZING") }

    /// Those that every Swift target shares.
    static let common: [SwiftSetting] =
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
        ] + (fuzzes ? [.unsafeFlags(["-sanitize=fuzzer", "-enable-testing"])] : [])

    /// The library and the programs write `unsafe` wherever memory safety rests on reasoning that the compiler cannot
    /// check, and say why it holds: beside the place, at the head of a function or, where all places of a type have the same
    /// reason, at the type. Two kinds need no reason of their own: `span.bytes` of an array of bytes, which have no padding
    /// that could be uninitialized; and system calls that are passed a variable with `&` or a string for the time of the
    /// call. https://github.com/swiftlang/swift-evolution/blob/main/proposals/0458-strict-memory-safety.md
    static let strict: [SwiftSetting] = common + [.strictMemorySafety()]
}

/// Whether a variable is 1 in the environment, on Linux. Such names are long because the environment is also that of every
/// package that depends on this one.
func isSet(_ variable: String) -> Bool {
    #if os(Linux)
        Context.environment[variable] == "1"
    #else
        false
    #endif
}

/// The program of builds for fuzzing.
var fuzzing: [Target] {
    guard Settings.fuzzes else { return [] }
    return [
        .executableTarget(
            name: "fuzzing",
            dependencies: [
                "MessagingHTTPCore", "Inspector", "LoopbackBroker", "MQTTCore", "STOMPCore", "MessagingWebSocketCore",
            ],
            path: "Tests/Fuzzing", swiftSettings: Settings.common,
            // Gold refuses our `main` beside libFuzzer's.
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])])
    ]
}

/// With MESSAGING_FAKE_APPLE=1 Transport is built as on Apple's systems, over fakes of their frameworks. Without the variable
/// none of them exists.
var fakesOfApple: [Target] {
    guard isSet("MESSAGING_FAKE_APPLE") else { return [] }
    let needs = [
        "CoreFoundation": [], "Security": ["CoreFoundation"], "CommonCrypto": ["Security"], "Network": ["Security"],
    ]
    return needs.sorted { $0.key < $1.key }.map { name, others in
        .target(
            name: name, dependencies: others.map { .target(name: $0) }, path: "Tests/AppleStubs/\(name)",
            swiftSettings: Settings.common)
    }
}
var appleFrameworks: [Target.Dependency] { fakesOfApple.map { .target(name: $0.name) } }

import Foundation
import MQTTCore
import STOMPCore

/// Runs libFuzzer on one part of the package. Built only with `MESSAGING_FUZZING=1` in the environment:
///
///     MESSAGING_FUZZING=1 swift run -c release --scratch-path .build/fuzzing fuzzing TARGET [CORPUS] [-max_total_time=300 …]
///
/// Without a target it prints their names. Everything behind the target is libFuzzer's: a directory in which inputs
/// that reach new code are kept, and its options (`-help=1`). An input that breaks an invariant is written to a file
/// `crash-…`; give that file in place of the corpus to run it alone.
@main
enum Main {
    static func main() {
        let name = CommandLine.arguments.dropFirst().first ?? ""
        guard let target = Target.all.first(where: { $0.name == name }) else {
            for target in Target.all { print(target.name) }
            exit(name.isEmpty ? 0 : 64)
        }
        chosen = target
        // libFuzzer reads its own arguments, which begin behind the name of the target.
        var count = CommandLine.argc - 1
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> = CommandLine.unsafeArgv + 1
        exit(
            runDriver(&count, &arguments) { bytes, count in
                let input = [UInt8](UnsafeBufferPointer(start: bytes, count: count))
                Main.chosen?.run(FuzzInput(input))
                return 0
            })
    }

    /// Set once, before libFuzzer starts; it runs on this thread alone.
    nonisolated(unsafe) private static var chosen: Target?
}

/// One part of the package that reads what a peer sends.
struct Target: Sendable {
    let name: String
    let run: @Sendable (FuzzInput) -> Void

    static let all: [Target] = [
        Target(name: "mqtt-decoder") { MQTTDecoding.check($0) },
        Target(name: "mqtt-client") { MQTTConversation.check($0, role: .client) },
        Target(name: "mqtt-server") { MQTTConversation.check($0, role: .server) },
        Target(name: "stomp-decoder") { STOMPDecoding.check($0) },
        Target(name: "stomp-client") { STOMPConversation.check($0, role: .client) },
        Target(name: "stomp-server") { STOMPConversation.check($0, role: .server) },
        Target(name: "http-heads") { HTTPHeads.check($0) },
        Target(name: "websocket") { WebSocketFrames.check($0) },
        Target(name: "router") { RouterOrders.check($0) },
        Target(name: "page") { PageRequests.check($0) },
    ]
}

/// Ends the run, and lets libFuzzer keep the input.
func require(_ condition: Bool, _ message: @autoclosure () -> String) {
    if !condition { fatalError(message()) }
}

/// <https://llvm.org/docs/LibFuzzer.html#using-libfuzzer-as-a-library>
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<Int32>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

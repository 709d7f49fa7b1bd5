import Foundation
import MQTT

/// Writes a session store until it is killed, and says what it may be held to, each line in one write:
/// `a 7` message 7 is accepted, `g 7` it is about to be done, `f 7` it is done.
///
/// Arguments: the directory, what to write through (`store` or `client`), the first number, a seed.
///
/// With `full` for what to write through, it writes until the file can grow no more, tries some more, says `x 7` for what
/// is refused, and ends by itself.
@main
struct Main {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let first = UInt64(arguments[3]), let seed = UInt64(arguments[4]) else {
            say("usage: session-store-writer DIRECTORY store|client|full FIRST SEED")
            exit(64)
        }
        var options = FileSessionStore.Options()
        // Rewritten all the time, so that many kills fall into it.
        options.compactionSize = 2048
        options.sync = seed % 4 == 0 ? .always : .never
        let store = FileSessionStore(directory: arguments[1], options: options)
        if arguments[2] == "full" {
            options.compactionSize = 1 << 20
            try fill(FileSessionStore(directory: arguments[1], options: options), from: first)
        } else if arguments[2] == "client" {
            try await enqueue(into: store, from: first)
        } else {
            try write(to: store, from: first, seed: seed)
        }
    }

    static func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }

    private static func write(to store: FileSessionStore, from first: UInt64, seed: UInt64) throws {
        var live: [UInt64] = []
        for record in try store.open().records {
            if case .message(let message) = record { live.append(message.sequence) }
        }
        say("ready")
        var random = seed
        var number = first
        while true {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            if random >> 60 < 7, let done = live.first {
                say("g \(done)")
                try store.append([.finished(sequence: done)])
                live.removeFirst()
                say("f \(done)")
            } else {
                let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: Int(random >> 56))
                try store.append([
                    .message(
                        .init(
                            sequence: number, packetID: UInt16(truncatingIfNeeded: number), topic: "t/\(number)",
                            payload: payload, qos: .exactlyOnce, retain: false, properties: []))
                ])
                live.append(number)
                say("a \(number)")
                number += 1
            }
        }
    }

    private static func fill(_ store: FileSessionStore, from first: UInt64) throws {
        _ = try store.open()
        var refused = 0
        var number = first
        while refused < 40 {
            // Different sizes meet the end of the disk in every part of a record.
            let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: Int(number * 37 % 700))
            do {
                try store.append([
                    .message(
                        .init(
                            sequence: number, packetID: UInt16(truncatingIfNeeded: number), topic: "t",
                            payload: payload,
                            qos: .exactlyOnce, retain: false, properties: []))
                ])
                say("a \(number)")
                if number % 7 == 0 {
                    try store.append([.finished(sequence: number)])
                    say("f \(number)")
                }
            } catch {
                refused += 1
                say("x \(number)")
            }
            number += 1
        }
    }

    private static func enqueue(into store: FileSessionStore, from first: UInt64) async throws {
        var configuration = MQTTConfiguration(clientID: "writer")
        configuration.sessionStore = store
        configuration.maximumQueuedMessages = .max
        let client = MQTTClient("mqtt://127.0.0.1:1", configuration: configuration)
        var number = first
        say("ready")
        while true {
            try await client.enqueue(MQTTOutgoingMessage(Array("\(number)".utf8), to: "t/\(number)", qos: .exactlyOnce))
            say("a \(number)")
            number += 1
        }
    }
}

import Foundation
import MQTT

/// Writes a session store until its process is killed, and says what it may be held to, each line in one write:
/// `a 7` message 7 is accepted, `g 7` it is about to be done, `f 7` it is done. Runs in the child of an exit test.
enum StoreWriter {
    /// Writes through a store or a client, and kills its own process at some moment.
    ///
    /// - Parameter arguments: the directory, what to write through (`store` or `client`), the first number, a seed, and the
    ///   microseconds after the first line that the process has to live.
    static func writeUntilKilled(_ arguments: [String]) async throws {
        guard arguments.count == 5, let first = UInt64(arguments[2]), let seed = UInt64(arguments[3]),
            let time = UInt32(arguments[4])
        else { return }
        var options = FileSessionStore.Options()
        // Rewritten all the time, so that many kills fall into it.
        options.compactionSize = 2048
        options.sync = seed % 4 == 0 ? .always : .never
        let store = FileSessionStore(directory: arguments[0], options: options)
        if arguments[1] == "client" {
            try await enqueue(into: store, from: first, killedAfter: time)
        } else {
            try write(to: store, from: first, seed: seed, killedAfter: time)
        }
    }

    /// Writes until the file can grow no more, tries some more, and says `x 7` for what is refused.
    static func writeUntilFull(_ directory: String) throws {
        var options = FileSessionStore.Options()
        options.compactionSize = 1 << 20
        options.sync = .always
        try fill(FileSessionStore(directory: directory, options: options), from: 1)
    }

    /// A thread of its own, so that the signal finds the writer anywhere.
    private static func kill(after microseconds: UInt32) {
        Thread.detachNewThread {
            usleep(microseconds)
            Foundation.kill(getpid(), SIGKILL)
        }
    }

    private static func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }

    private static func write(to store: FileSessionStore, from first: UInt64, seed: UInt64, killedAfter time: UInt32)
        throws
    {
        var live: [UInt64] = []
        for record in try store.open().records {
            if case .message(let message) = record { live.append(message.sequence) }
        }
        say("ready")
        kill(after: time)
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

    private static func enqueue(into store: FileSessionStore, from first: UInt64, killedAfter time: UInt32) async throws
    {
        var configuration = MQTTConfiguration(clientID: "writer")
        configuration.sessionStore = store
        configuration.maximumQueuedMessages = .max
        let client = MQTTClient("mqtt://127.0.0.1:1", configuration: configuration)
        var number = first
        say("ready")
        kill(after: time)
        while true {
            try await client.enqueue(MQTTOutgoingMessage(Array("\(number)".utf8), to: "t/\(number)", qos: .exactlyOnce))
            say("a \(number)")
            number += 1
        }
    }
}

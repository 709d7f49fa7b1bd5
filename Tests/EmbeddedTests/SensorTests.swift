import LoopbackBroker
import MQTT
import TestSupport
import Testing

/// The sensor of Examples/Embedded on QEMU's RISC-V board, behind a serial line that a bridge connects to a broker.
@Suite(.serialized, .requires(program: "qemu-system-riscv32", "riscv64-unknown-elf-gcc", "python3"))
struct SensorTests {
    /// Runs the sensor against a broker: readings arrive, a message switches the lamp, and after a cut of the line every
    /// reading of that time arrives.
    private func run(at url: String, port: Int) async throws {
        let image = try await EmbeddedProgram.sensor()
        let client = MQTTClient(url, clientID: "reader")
        try await client.connect()
        let readings = try await client.subscribe(to: "sensor/readings", qos: .atLeastOnce)
        var command = Command("python3", [Repository.path("Examples/Embedded/bridge"), image, "127.0.0.1", "\(port)"])
        command.input = .pipe
        let bridge = try await ChildProcess.start(command)
        var numbers: Set<Int> = []
        var last = Reading(number: 0, temperature: "", lamp: "", memory: 0)
        /// Reads until one of them is the last; if that does not come, the error has what the bridge says.
        func read(until isLast: @escaping @Sendable (Reading) -> Bool) async throws {
            do {
                let read = try await withTimeout(.patience, "a reading of the sensor") {
                    var read: [Reading] = []
                    for try await message in readings {
                        read.append(try Reading(try #require(message.text)))
                        if isLast(read[read.count - 1]) { break }
                    }
                    return read
                }
                last = try #require(read.last)
                numbers.formUnion(read.map(\.number))
            } catch { throw TimeoutError("\(error), last \(last); \(bridge.report)") }
        }

        try await read { $0.number >= 3 }
        #expect(last.lamp == "off")
        #expect(last.temperature.wholeMatch(of: /2\d\.\d/) != nil)
        // An empty line is no order, and not the end of the input.
        try await bridge.write("\n")
        try await client.publish("1", to: "sensor/lamp", qos: .atLeastOnce)
        try await read { $0.lamp == "on" }

        try await bridge.write("cut\n")
        // Its window is full, PINGREQ has no answer: it closes the connection and calls again.
        try await bridge.waitForLine(containing: "call, line cut")
        let end = last.number
        // The lamp's subscription belongs to the session, which brings the message.
        try await client.publish("0", to: "sensor/lamp", qos: .atLeastOnce)
        try await bridge.write("mend\n")
        try await read { $0.lamp == "off" }
        try await read { $0.number > end + 10 }
        #expect(numbers == Set(1...(numbers.max() ?? 0)), "a reading is missing")
        #expect(last.memory < 16_384, "the arena has grown")

        bridge.closeInput()
        #expect(try await bridge.waitForExit() == .exited(0))
        await client.disconnect()
    }

    @Test func `keeps its readings over a cut line with the loopback broker`() async throws {
        let broker = try await LoopbackBroker.start()
        let url = try #require(broker.urls.mqtt)
        try await run(at: url, port: try #require(url.split(separator: ":").last.flatMap { Int($0) }))
        await broker.stop()
    }

    @Test(.requires(.mosquitto)) func `keeps its readings over a cut line with Mosquitto`() async throws {
        let broker = try await Mosquitto.start()
        try await run(at: "mqtt://127.0.0.1:\(broker.port)", port: broker.port)
        await broker.stop()
    }
}

/// What the sensor publishes: `17 21.5 off 1488`.
private struct Reading {
    var number: Int
    var temperature: String
    var lamp: String
    /// The most bytes of its arena that were in use.
    var memory: Int

    init(number: Int, temperature: String, lamp: String, memory: Int) {
        (self.number, self.temperature, self.lamp, self.memory) = (number, temperature, lamp, memory)
    }

    init(_ text: String) throws {
        let words = text.split(separator: " ").map { String($0) }
        try #require(words.count == 4)
        self.init(
            number: try #require(Int(words[0])), temperature: words[1], lamp: words[2],
            memory: try #require(Int(words[3])))
    }
}

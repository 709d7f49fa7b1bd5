import ClientTestSupport
import Foundation
import LoopbackBroker
import TestSupport
import Testing

@testable import MessagingDeviceSupport

/// Which broker the programs use, and where their own one listens.
@Suite(.turns)
struct AddressTests {
    @Test(arguments: DeviceProgram.allCases)
    func `the embedded broker and the page have the ports that were asked for`(program: DeviceProgram) async throws {
        let (port, pagePort) = (FreePort.next(), FreePort.next())
        let arguments = ["--port", "\(port)", "--page-port", "\(pagePort)", "--loop"]
        let device = try await program.start(arguments)
        let scheme = program == .motions ? "mqtt" : "stomp"
        #expect(try await device.embeddedPort(scheme) == port)
        let page = try await device.waitForLine(containing: "headquarters page: ").text
        #expect(page.hasPrefix("headquarters page: http://127.0.0.1:\(pagePort)/"))
        // Both are taken now.
        let second = try await program.run(["--port", "\(port)"])
        #expect(second.status == .exited(69))
        #expect(second.errors.count == 1 && second.errors[0].contains("the embedded broker cannot listen"))
        let third = try await program.run(["--page-port", "\(pagePort)"])
        #expect(third.status == .exited(69))
        #expect(third.errors.count == 1)
        #expect(try await device.end() == .exited(0))
    }

    @Test(arguments: [Device.locations, .motions])
    func `a port that was asked for is left to the listener that it was asked for`(device: Device) async throws {
        for option in ["--port", "--page-port"] {
            // Each of the three is the usual port of one protocol.
            let usual = [FreePort.next(), FreePort.next(), FreePort.next()]
            for port in usual {
                let arguments = [option, "\(port)"] + (option == "--port" ? ["--no-page"] : [])
                let broker = try await EmbeddedBroker.start(
                    for: device, options(arguments, for: device), place: nil,
                    usualPorts: .init(mqtt: usual[0], stomp: usual[1], ws: usual[2]))
                let address = option == "--port" ? broker.urls[0] : broker.pageAddress ?? ""
                #expect(address.contains("://127.0.0.1:\(port)"), "\(option) \(port): \(address)")
                await broker.stop()
            }
        }
    }

    private func options(_ arguments: [String], for device: Device) throws -> DeviceOptions {
        switch device {
        case .locations:
            guard case .run(let options) = try LocationsOptions.parse(arguments, environment: [:]) else { break }
            return options.common
        case .motions:
            guard case .run(let options) = try MotionsOptions.parse(arguments, environment: [:]) else { break }
            return options.common
        }
        throw DeviceFailure(.usage, "\(arguments)")
    }

    @Test(arguments: DeviceProgram.allCases)
    func `several brokers are tried in turn, also after a loss`(program: DeviceProgram) async throws {
        func url(_ port: Int) -> String { "\(program == .motions ? "mqtt" : "stomp")://127.0.0.1:\(port)" }
        func port(_ broker: LoopbackBroker) -> Int {
            (program == .motions ? broker.ports.mqtt : broker.ports.stomp) ?? 0
        }
        let (first, second) = (try await LoopbackBroker.judged(), try await LoopbackBroker.judged())
        let device = try await program.start(
            [FreePort.next(), port(first), port(second)].flatMap { ["--broker", url($0)] }
                + ["--device-id", "D", "--loop", "--interval", "0.1"])
        try await device.waitForLine(containing: "connected to \(url(port(first)))")
        await first.stop()
        let again = try await device.waitForLine(containing: "connected again to \(url(port(second)))")
        try await device.waitForLine(containing: program == .motions ? "pitch: " : "φ:", after: again)
        #expect(try await device.end() == .exited(0))
        #expect(device.lines().last?.contains("1 reconnect") == true)
        await second.stop()
    }

    @Test func `each broker is shown the credentials of its own URL`() async throws {
        func start(_ name: String, _ password: String) async throws -> LoopbackBroker {
            var options = LoopbackBrokerOptions()
            options.users = [.init(name: name, password: password)]
            return try await LoopbackBroker.judged(options)
        }
        let (ann, bob) = (try await start("ann", "a@1"), try await start("bob", "b:2"))
        let device = try await DeviceProgram.motions.start([
            "--broker", "mqtt://ann:a%401@127.0.0.1:\(ann.ports.mqtt ?? 0)", "--broker",
            "mqtt://bob:b%3A2@127.0.0.1:\(bob.ports.mqtt ?? 0)", "--device-id", "D", "--loop", "--frames",
        ])
        try await device.waitForLine(containing: "connected to")
        await ann.stop()
        try await device.waitForLine(containing: "connected again to")
        #expect(try await device.end() == .exited(0))
        #expect(!device.text().contains("a@1") && !device.text().contains("a%401") && !device.text().contains("ann:"))
        await bob.stop()
    }

    @Test func `the virtual host is the header host`() async throws {
        let (status, output, _) = try await DeviceProgram.locations.run(
            ["--virtual-host", "second", "--frames", "--speed", "2000", "--interval", "10"])
        #expect(status == .exited(0))
        #expect(output.contains { $0.hasPrefix(">>> CONNECT ") && $0.contains(" host:second ") })
    }

    @Test func `a fleet with a name is spread along the track and beside it`() async throws {
        let (status, output, _) = try await DeviceProgram.locations.run(
            ["--fleet", "3", "--name", "van", "--speed", "500"])
        #expect(status == .exited(0))
        #expect(output.contains("device: van-1") && output.contains("device: van-3"))
        let first = (1...3).compactMap { number in output.first { $0.hasPrefix("\(number): φ:") } }
        #expect(Set(first.map { $0.dropFirst(3) }).count == 3)
        // Each drives the whole track, wherever it starts.
        for number in 1...3 { #expect(output.count { $0.hasPrefix("\(number): φ:") } == 128) }
        #expect(output.last?.hasPrefix("summary: 3 devices, 384 fixes sent, 0 unconfirmed, ") == true)
    }
}

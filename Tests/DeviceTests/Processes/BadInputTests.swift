import ClientTestSupport
import Foundation
import LoopbackBroker
import STOMP
import TestSupport
import Testing

/// Mistakes and refusals: one line on standard error and a status of its own each.
@Suite(.turns)
struct BadInputTests {
    private func expect(
        _ program: DeviceProgram, _ arguments: [String], user: BrokerUser? = nil, _ status: Int32, _ words: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let result = try await program.run(arguments, user: user)
        #expect(result.status == .exited(status), sourceLocation: sourceLocation)
        #expect(result.errors.count == 1, "\(result.errors)", sourceLocation: sourceLocation)
        let line = result.errors.first ?? ""
        #expect(line.hasPrefix("\(program.rawValue): "), sourceLocation: sourceLocation)
        #expect(line.contains(words), "\(line)", sourceLocation: sourceLocation)
    }

    @Test func `command lines and files`() async throws {
        let scratch = try ScratchDirectory("devices")
        let motions = try scratch.write("0.1,0.2,0.3\n0.1,x,0.3\n", to: "motions.csv")
        let track = try scratch.write("45.5,7.25\n99,7.5\n", to: "track.csv")
        let gpx = try scratch.write("<gpx><trk><trkseg>\n<trkpt lat=\"1\"/></trkseg></trk></gpx>", to: "track.gpx")
        try await expect(.motions, ["--speeed", "2"], 64, "did you mean --speed?")
        try await expect(.motions, ["--motion", scratch.file("none.csv")], 66, "No such file")
        try await expect(.motions, ["--motion", motions], 65, "motions.csv, line 2: ")
        try await expect(.locations, ["--track", track], 65, "track.csv, line 2: ")
        try await expect(.locations, ["--track", gpx], 65, "track.gpx, line 2")
        try await expect(.locations, ["--track", scratch.path], 66, "it is a directory")
    }

    @Test func `brokers that cannot be reached`() async throws {
        let closed = FreePort.next()
        for (program, scheme) in [(DeviceProgram.motions, "mqtt"), (.locations, "stomp")] {
            try await expect(
                program, ["--broker", "\(scheme)://nobody.invalid", "--no-reconnect"], 68, "nobody.invalid")
            try await expect(
                program, ["--broker", "\(scheme)://127.0.0.1:\(closed)", "--no-reconnect"], 69, "refused the connection"
            )
        }
    }

    @Test func `a broker that never answers is given up after five attempts, each shown`() async throws {
        let result = try await DeviceProgram.motions.run(["--broker", "mqtt://127.0.0.1:\(FreePort.next())"])
        #expect(result.status == .exited(69))
        #expect(result.output.filter { $0.hasPrefix("connecting") }.count == 1)
        #expect(result.output.filter { $0.contains("refused the connection") }.count == 1)
        #expect(result.output.filter { $0.hasPrefix("the same again; trying again in ") }.count == 3)
        for attempt in 2...5 {
            #expect(result.output.contains { $0.hasSuffix("(attempt \(attempt) of 5)") })
        }
        #expect(result.errors.count == 1)
        #expect(result.errors.first?.contains("gave up after 5 attempts: ") == true)
        let help = try await DeviceProgram.motions.run(["--help"])
        #expect(help.output.joined(separator: " ").contains("five attempts at the first connection"))
    }

    @Test func `what the library tells programmers, programs do not repeat`() async throws {
        for program in DeviceProgram.allCases {
            let scheme = program == .motions ? "mqtt" : "stomp"
            let url = "\(scheme)://127.0.0.1:\(FreePort.next())"
            let result = try await program.run(["--broker", url, "--no-reconnect"])
            let line = try #require(result.errors.first)
            #expect(line.contains("refused the connection"))
            #expect(!line.contains("ReconnectPolicy") && !line.contains("start()"), "\(line)")
        }
    }

    @Test(.requires(.rabbitMQ), arguments: DeviceProgram.allCases)
    func `a WebSocket address without its path names the path that RabbitMQ has`(program: DeviceProgram) async throws {
        let broker = try await SharedBrokers.rabbitMQ()
        let port = program == .motions ? broker.webMQTTPort ?? 0 : broker.webStompPort
        // An http: address is taken as ws:.
        try await expect(
            program, ["--broker", "http://127.0.0.1:\(port)", "--no-reconnect"], user: broker.user, 69,
            "and /ws for RabbitMQ")
    }

    @Test(arguments: DeviceProgram.allCases)
    func `a server of another protocol ends connecting at once`(program: DeviceProgram) async throws {
        // The WebSocket listener answers everything but an upgrade as an HTTP server does.
        let server = try await LoopbackBroker.judged()
        let port = server.ports.ws ?? 0
        let scheme = program == .motions ? "mqtt" : "stomp"
        try await expect(program, ["--broker", "\(scheme)://127.0.0.1:\(port)"], 76, "cannot connect")
        await server.stop()
    }

    @Test(arguments: DeviceProgram.allCases)
    func `what a web server answers is in the line`(program: DeviceProgram) async throws {
        let server = try BadServer.start(.web)
        let scheme = program == .motions ? "mqtt" : "stomp"
        try await expect(
            program, ["--broker", "\(scheme)://127.0.0.1:\(server.port)"], 76, "\"HTTP/1.1 400 Bad Request\"")
    }

    @Test(arguments: DeviceProgram.allCases)
    func `a server that is silent is named after a few seconds`(program: DeviceProgram) async throws {
        let server = try BadServer.start(.mute)
        let url = "\(program == .motions ? "mqtt" : "stomp")://127.0.0.1:\(server.port)"
        let device = try await program.start(["--broker", url])
        try await device.waitForLine(containing: "still waiting: \(url) has not answered yet")
        #expect(try await device.end() == .exited(0))
    }

    @Test func `a text that ends each connection ends the program, which says so`() async throws {
        let broker = try await LoopbackBroker.judged()
        let device = try await DeviceProgram.locations.start([
            "--broker", try broker.stompURL, "--device-id", "T", "--loop", "--ack", "client-individual",
        ])
        try await device.waitForLine(containing: "subscribed to /queue/device.T.text")
        // More headers than a client accepts, with those that the broker adds.
        let headers = STOMPHeaders((0..<2044).map { .init("h\($0)", "") })
        try await STOMPClient(broker.stompURL).withConnection { client in
            try await client.sendAndConfirm(
                "too much", to: "/queue/device.T.text", options: STOMPSendOptions(headers: headers))
        }
        #expect(try await device.waitForEnd() == .exited(76))
        let errors = device.lines(.errors)
        #expect(errors.count == 1 && errors.first?.contains("2048 headers") == true, "\(errors)")
        await broker.stop()
    }

    @Test func `a port that is taken is named with its option`() async throws {
        let other = try await LoopbackBroker.judged()
        let port = "\(other.ports.stomp ?? 0)"
        for (option, listener) in [("--port", "embedded broker"), ("--page-port", "headquarters page")] {
            try await expect(
                .locations, [option, port, "--once"], 69,
                "the \(listener) cannot listen on 127.0.0.1:\(port): Address already in use. Give another port with \(option)"
            )
        }
        await other.stop()
    }

    @Test func `a server that hangs up before it has accepted us speaks another protocol, too`() async throws {
        // Each program's embedded broker serves both protocols.
        let other = try await DeviceProgram.motions.start(["--loop"])
        let port = try await other.embeddedPort("mqtt")
        try await expect(
            .locations, ["--broker", "stomp://127.0.0.1:\(port)", "--no-reconnect"], 76, "cannot connect")
        #expect(try await other.end() == .exited(0))
    }

    @Test(.requires(.mosquitto)) func `refused credentials end at once`() async throws {
        let broker = try await Mosquitto.start { $0.users = [BrokerUser("ann", password: "right")] }
        try await expect(
            .motions, ["--broker", "mqtt://127.0.0.1:\(broker.port)"], user: BrokerUser("ann", password: "wrong"), 77,
            "user name")
        let accepted = try await DeviceProgram.motions.run(
            ["--broker", "mqtt://ann:right@127.0.0.1:\(broker.port)", "--speed", "60", "--frames"])
        #expect(accepted.status == .exited(0))
        #expect(accepted.output.contains { $0.hasSuffix("user ann password *** ") || $0.contains("password ***") })
        #expect(!accepted.output.contains { $0.contains("right") })
        await broker.stop()
    }

    @Test(.requires(.mosquitto)) func `without reconnecting, the first loss is final`() async throws {
        let broker = try await Mosquitto.start()
        let device = try await DeviceProgram.motions.start(
            ["--broker", "mqtt://127.0.0.1:\(broker.port)", "--no-reconnect"])
        try await device.waitForLine(containing: "pitch: ")
        await broker.kill()
        #expect(try await device.waitForEnd() == .exited(75))
        #expect(device.lines(.errors).count == 1)
        #expect(device.text(.errors).contains("connection lost: "))
    }
}

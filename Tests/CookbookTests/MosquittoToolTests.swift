import Foundation
import TestSupport
import Testing

/// `publish` and `subscribe` beside Mosquitto's own tools.
@Suite(.requiresCookbook, .turns)
struct MosquittoToolTests {
    private func url(_ broker: Mosquitto) -> String { "mqtt://127.0.0.1:\(broker.port)" }

    private let format = "%t|%p|%q|%r|%l|%x"

    @Test(.requires(.mosquitto), .requires(program: "mosquitto_sub"))
    func `publish sends what mosquitto_sub prints`() async throws {
        let broker = try await Mosquitto.start()
        let scratch = try ScratchDirectory("cookbook")
        let file = try scratch.write("from a file", to: "message")
        let watcher = try await MosquittoClients.subscribe(to: "home/#", port: broker.port, ["-q", "2", "-F", format])
        for (arguments, input) in [
            (["-m", "Öl", "-q", "2"], nil), (["--lines", "-q", "1"], "one\ntwo\n"), (["--stdin"], "three\n"),
            (["--file", file], nil), (["--null"], nil), (["--message=", "-q", "1"], nil),
        ] {
            let (status, output, errors) = try await CookbookProgram.publish.run(
                ["--broker", url(broker), "--topic", "home/kitchen"] + arguments, input: input)
            #expect(status == .exited(0) && output == [] && errors == [])
        }
        for line in [
            "home/kitchen|Öl|2|0|3|c3966c", "home/kitchen|one|1|0|3|6f6e65", "home/kitchen|two|1|0|3|74776f",
            "|0|0|6|74687265650a", "home/kitchen|from a file|0|0|11|", "home/kitchen||0|0|0|",
            "home/kitchen||1|0|0|",
        ] { try await watcher.waitForLine(containing: line) }
        await broker.stop()
    }

    @Test(.requires(.mosquitto), .requires(program: "mosquitto_pub"))
    func `subscribe prints what mosquitto_pub sends, and ends after a count or a time`() async throws {
        let broker = try await Mosquitto.start()
        try await MosquittoClients.publish("kept", to: "home/cellar", port: broker.port, ["-r", "-q", "1"])
        let subscriber = try await CookbookProgram.subscribe.start(
            ["-b", url(broker), "-t", "home/+", "-t", "garden", "-q", "2", "-F", "\(format)|100%%", "-C", "3"])
        try await subscriber.waitForLine(containing: "home/cellar|kept|1|1|4|6b657074|100%")
        try await MosquittoClients.publish("Öl", to: "home/kitchen", port: broker.port, ["-q", "2"])
        try await subscriber.waitForLine(containing: "home/kitchen|Öl")
        try await MosquittoClients.publish("rain", to: "garden", port: broker.port)
        #expect(try await subscriber.waitForEnd() == .exited(0))
        #expect(
            subscriber.lines().dropFirst() == ["home/kitchen|Öl|2|0|3|c3966c|100%", "garden|rain|0|0|4|7261696e|100%"])

        let timed = try await CookbookProgram.subscribe.run(
            ["-b", url(broker), "-t", "home/#", "-v", "--timeout", "5"])
        #expect(timed.status == .exited(0) && timed.output == ["home/cellar kept"])
        let fresh = try await CookbookProgram.subscribe.run(
            ["-b", url(broker), "-t", "home/#", "--no-retained", "--timeout", "1"])
        #expect(fresh.status == .exited(0) && fresh.output == [])
        await broker.stop()
    }

    @Test(.requires(.mosquitto), .requires(program: "mosquitto_pub"))
    func `properties arrive, and a session that is kept has its messages`() async throws {
        let broker = try await Mosquitto.start()
        // Arrives when the program has subscribed.
        try await MosquittoClients.publish("ready", to: "home/ready", port: broker.port, ["-r"])
        let arguments = ["-b", url(broker), "-t", "home/#", "-q", "1", "-5", "--id", "kept", "--keep-session"]
        let first = try await CookbookProgram.subscribe.start(arguments)
        try await first.waitForLine(containing: "ready")
        #expect(try await first.end(by: SIGINT) == .exited(0))
        let sent = try await CookbookProgram.publish.run([
            "-b", url(broker), "-t", "home/kitchen", "-m", "21.5", "-q", "1", "--content-type", "text/plain",
            "-p", "room=kitchen", "-p", "formula=a=b", "--expiry", "60",
        ])
        #expect(sent.status == .exited(0))
        let second = try await CookbookProgram.subscribe.run(
            arguments + ["--no-retained", "--count", "1", "--format", "%p %c %P"])
        #expect(second.output == ["21.5 text/plain room=kitchen formula=a=b"])
        await broker.stop()
    }

    @Test(.requires(.mosquitto), .requires(program: "mosquitto_sub", "mosquitto_pub"))
    func `a will is published when the program is killed, and not after Ctrl-C`() async throws {
        let broker = try await Mosquitto.start()
        let watcher = try await MosquittoClients.subscribe(to: "wills", port: broker.port, ["-F", "%p %r"])
        try await MosquittoClients.publish("ready", to: "ready", port: broker.port, ["-r"])
        for (id, signal) in [("interrupted", SIGINT), ("killed", SIGKILL)] {
            let subscriber = try await CookbookProgram.subscribe.start([
                "-b", url(broker), "-t", "ready", "-i", id, "--will-topic", "wills", "--will-payload", id, "--will-qos",
                "1",
            ])
            try await subscriber.waitForLine(containing: "ready")
            let status = try await subscriber.end(by: signal)
            #expect(status == (signal == SIGINT ? .exited(0) : .signalled(SIGKILL)))
        }
        try await watcher.waitForLine(containing: "killed 0")
        #expect(!watcher.text().contains("interrupted"))
        await broker.stop()
    }

    @Test(arguments: [
        (["-t", "a", "-m", "x", "--nope"], "There is no option --nope."), (["-m", "x"], "A --topic is missing."),
        (["-t", "a"], "There is nothing to publish"), (["-t", "a", "-m"], "--message needs a value."),
        (["-t", "a", "-m", "x", "-q", "3"], "--qos is a whole number from 0 to 2, not '3'."),
        (["-t", "a", "-f", "/nonexistent"], "Cannot read /nonexistent."),
        (["-t", "a", "-m", "x", "-p", "name"], "A property is NAME=VALUE, not 'name'."),
        (["-t", "a", "-m", "x", "-r=1"], "--retain has no value."),
        (["-t", "a", "-m", "hello", "world"], "'world' belongs to no option. Quote a value that has blanks."),
    ])
    func `a wrong option is a sentence and the status 64`(arguments: [String], message: String) async throws {
        let (status, output, errors) = try await CookbookProgram.publish.run(arguments)
        #expect(status == .exited(64) && output == [])
        #expect(errors.count == 1 && errors.first?.hasPrefix(message) == true, "\(errors)")
    }
}

import ClientTestSupport
import Foundation
import Inspector
import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Testing

/// What an inspector page's server reports about frames, and to whom.
@Suite(.turns)
struct InspectorServerTests {
    /// A page with the frames of one short conversation.
    private func withFrames(_ body: (InspectorClient, FrameLog) async throws -> Void) async throws {
        let broker = try await LoopbackBroker.judged()
        let log = FrameLog()
        var configuration = MQTTConfiguration(clientID: "phone")
        configuration.credentials = Credentials(userName: "ann", password: "hush-hush")
        let client = MQTTClient("mqtt://127.0.0.1:\(broker.ports.mqtt ?? 0)", configuration: configuration)
        client.inspect(into: log)
        try await client.connect()
        try await client.publish("\"on\"", to: "kitchen/light", qos: .atLeastOnce)
        await client.disconnect()
        await broker.stop()
        let page = try await InspectorPage.start(log)
        try await body(InspectorClient(page: page), log)
        await page.stop()
    }

    @Test func `streams the frames after a number, and reports everything about one`() async throws {
        try await withFrames { client, log in
            let frames = try await client.events().frames(upTo: 5)
            #expect(
                frames.compactMap { $0["type"] as? String } == [
                    "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "DISCONNECT",
                ])
            #expect(frames[2]["destination"] as? String == "kitchen/light")
            #expect(frames[2]["qos"] as? Int == 1)
            #expect(frames[2]["payload"] as? String == "\"\"on\"\"")
            #expect(frames[3]["answers"] as? Int == 3)
            #expect((frames[3]["after"] as? Int ?? -1) >= 0)
            #expect(try await client.events(since: 3).frames(upTo: 5).compactMap { $0["number"] as? Int } == [4, 5])
            let one = try await client.get("frame?number=3")
            #expect(one.contains(#"["Topic Name","kitchen/light"]"#))
            let connect = try await client.get("frame?number=1")
            #expect(connect.contains(#"["User Name","***"]"#))
            #expect(!connect.contains("hush"))
            // The bytes are there in hexadecimal digits, the password's as stars.
            #expect(connect.contains("2a2a2a0009" + String(repeating: "2a", count: 9) + "\""))
            for number in ["0", "6", "x", "18446744073709551615"] {
                let none = try await client.get("frame?number=\(number)")
                #expect(none.hasPrefix("HTTP/1.1 404 "))
            }
        }
    }

    @Test func `serves the page, the capture, and pauses, resumes and clears`() async throws {
        try await withFrames { client, log in
            let page = try await client.get("")
            #expect(page.hasPrefix("HTTP/1.1 200 OK\r\n"))
            for file in ["inspector.css", "inspector.js", "inspector-topics.js"] {
                #expect(page.contains("\"\(file)\""))
                let answer = try await client.get(file)
                #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
            }
            let capture = try await client.get("frames.pcapng")
            #expect(capture.contains("Content-Disposition: attachment; filename=\"frames.pcapng\"\r\n"))
            #expect(capture.contains("PUBLISH kitchen/light QoS 1 (phone)"))
            #expect(!capture.contains("hush"))
            let stream = try await client.events()
            #expect(try await stream.update().frames.count == 5)
            for (action, isPaused, count) in [("pause", true, 5), ("resume", false, 5), ("clear", false, 0)] {
                let done = try await client.post(action)
                #expect(done.hasPrefix("HTTP/1.1 200 OK\r\n"))
                #expect(log.isPaused == isPaused)
                #expect(log.snapshot().frames.count == count)
                #expect(try await stream.update().isPaused == isPaused)
            }
            let wrong = try await client.exchange("GET \(client.root)clear", ["Host: \(client.host)"])
            #expect(wrong.hasPrefix("HTTP/1.1 405 "))
        }
    }

    @Test func `publishes what the visitor typed, and shows why it could not`() async throws {
        let published = Mutex<[String]>([])
        let page = try await InspectorPage.start(FrameLog()) { topic, payload in
            guard topic != "forbidden" else { throw PublishError() }
            published.withLock { $0.append("\(topic): \(String(decoding: payload, as: UTF8.self))") }
        }
        let client = InspectorClient(page: page)
        let done = try await client.post("publish?topic=a/b%20%C3%A9", body: "21.5 °C")
        #expect(done.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(done.contains(#"{"microseconds":"#))
        #expect(published.withLock { $0 } == ["a/b é: 21.5 °C"])
        let refused = try await client.post("publish?topic=forbidden", body: "x")
        #expect(refused.hasPrefix("HTTP/1.1 500 "))
        #expect(refused.hasSuffix("The shop is closed.\n"))
        for query in ["", "?topic=", "?topic=%FF", "?topic=%4"] {
            let none = try await client.post("publish\(query)", body: "x")
            #expect(none.hasPrefix("HTTP/1.1 400 "), "\(query)")
        }
        #expect(published.withLock { $0.count } == 1)
        await page.stop()
    }

    private struct PublishError: Error, CustomStringConvertible {
        var description: String { "The shop is closed." }
    }

    @Test func `has no publish pane without a closure`() async throws {
        try await withFrames { client, _ in
            let answer = try await client.post("publish?topic=a", body: "x")
            #expect(answer.hasPrefix("HTTP/1.1 404 "))
            #expect(try await client.events().block().contains(#""publishes":false"#))
        }
    }

    @Test func `limits bodies, heads and the number of open pages`() async throws {
        try await withFrames { client, _ in
            let fields = ["Host: \(client.host)", "Origin: http://\(client.host)"]
            for length in ["Content-Length: 262145", "Content-Length: -1", "Transfer-Encoding: chunked"] {
                let answer = try await client.exchange("POST \(client.root)pause", fields + [length])
                #expect(answer.hasPrefix("HTTP/1.1 400 "), "\(length)")
            }
            let long = try await client.get("?" + String(repeating: "x", count: 9_000))
            #expect(long.hasPrefix("HTTP/1.1 400 "))
            var streams: [EventStream] = []
            for _ in 0..<16 { streams.append(try await client.events()) }
            let refused = try await client.get("events")
            #expect(refused.hasPrefix("HTTP/1.1 503 "))
            #expect(streams.count == 16)
        }
    }

    @Test func `ends the streams of open pages when it stops, and frees its port`() async throws {
        let log = FrameLog()
        let page = try await InspectorPage.start(log, port: UInt16(FreePort.next()))
        let stream = try await InspectorClient(page: page).events()
        _ = try await stream.update()
        await page.stop()
        await #expect(throws: StreamEnded.self) { while true { _ = try await stream.block() } }
        let second = try await InspectorPage.start(log, port: UInt16(page.port))
        #expect(second.port == page.port)
        #expect(second.address != page.address)
        await second.stop()
    }
}

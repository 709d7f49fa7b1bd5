import DeviceSupport
import Foundation
import LoopbackBroker
import MQTT
import TestSupport
import Testing

/// What the page server tells of frames, and whom.
@Suite(.turns)
struct FrameFeedTests {
    private func answer(_ lines: String..., from server: PageServer) async throws -> String {
        let connection = try await RawConnection.open(port: server.port)
        try await connection.send(Array((lines + ["", ""]).joined(separator: "\r\n").utf8))
        return String(decoding: try await connection.receive { _ in false }, as: UTF8.self)
    }

    /// A server with the frames of one short conversation.
    private func withFrames(_ body: (PageServer, FrameLog) async throws -> Void) async throws {
        let broker = try await LoopbackBroker.start()
        let log = FrameLog()
        var configuration = MQTTConfiguration(clientID: "phone")
        configuration.credentials = Credentials(userName: "ann", password: "hush-hush")
        let client = MQTTClient("mqtt://127.0.0.1:\(broker.ports.mqtt ?? 0)", configuration: configuration)
        client.inspect(into: log)
        try await client.connect()
        try await client.publish("\"on\"", to: "kitchen/light", qos: .atLeastOnce)
        await client.disconnect()
        await broker.stop()
        let server = try await PageServer.start(PageSite(first: .motions, brokers: [:], frames: log))
        try await body(server, log)
        await server.stop()
    }

    @Test func `tells of the frames after a number, and all about one`() async throws {
        try await withFrames { server, log in
            let all = try await answer(
                "GET /frames.json?since=0 HTTP/1.1", "Host: 127.0.0.1:\(server.port)", from: server)
            #expect(all.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(!all.contains("hush"))
            let body = try #require(all.components(separatedBy: "\r\n\r\n").last)
            let parsed = try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
            let frames = try #require(parsed?["frames"] as? [[String: Any]])
            #expect(
                frames.compactMap { $0["type"] as? String } == [
                    "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "DISCONNECT",
                ])
            #expect(frames[2]["destination"] as? String == "kitchen/light")
            #expect(frames[2]["qos"] as? Int == 1)
            #expect(parsed?["cursor"] as? Int == 5)
            let none = try await answer("GET /frames.json?since=5 HTTP/1.1", "Host: localhost", from: server)
            #expect(none.contains("\"frames\":[]"))
            let one = try await answer("GET /frame.json?number=3 HTTP/1.1", "Host: [::1]:80", from: server)
            #expect(one.contains(#"["Topic Name","kitchen/light"]"#))
            let connect = try await answer("GET /frame.json?number=1 HTTP/1.1", "Host: localhost", from: server)
            #expect(connect.contains(#"["User Name","ann"]"#))
            // The octets are there in hexadecimal digits, the password's in stars.
            #expect(connect.contains("616e6e0009" + String(repeating: "2a", count: 9) + "\""))
            for number in ["0", "6", "x", "18446744073709551615"] {
                let none = try await answer(
                    "GET /frame.json?number=\(number) HTTP/1.1", "Host: localhost", from: server)
                #expect(none.hasPrefix("HTTP/1.1 404 "))
            }
        }
    }

    @Test func `serves the capture, pauses, resumes and clears`() async throws {
        try await withFrames { server, log in
            let host = "127.0.0.1:\(server.port)"
            let capture = try await answer("GET /frames.pcapng HTTP/1.1", "Host: \(host)", from: server)
            #expect(capture.contains("Content-Disposition: attachment; filename=\"frames.pcapng\"\r\n"))
            #expect(capture.contains("PUBLISH kitchen/light QoS 1 (phone)"))
            #expect(!capture.contains("hush"))
            for (action, isPaused, count) in [("pause", true, 5), ("resume", false, 5), ("clear", false, 0)] {
                let done = try await answer(
                    "POST /frames/\(action) HTTP/1.1", "Host: \(host)", "Origin: http://\(host)", from: server)
                #expect(done.hasPrefix("HTTP/1.1 200 OK\r\n"))
                #expect(log.isPaused == isPaused)
                #expect(log.snapshot().frames.count == count)
            }
            let wrong = try await answer("GET /frames/clear HTTP/1.1", "Host: \(host)", from: server)
            #expect(wrong.hasPrefix("HTTP/1.1 405 "))
        }
    }

    @Test(arguments: [
        "Host: evil.example", "Host: 127.0.0.1.evil.example", "Host: 127.0.0.1:x", "Host: localhost:80@evil.example",
        "X: no host", "Host: 127.0.0.1\r\nHost: evil.example", "Host: 127.0.0.1\r\nOrigin: http://evil.example",
        "Host: 127.0.0.1\r\nOrigin: null", "Host: 127.0.0.1:80\r\nOrigin: http://127.0.0.1:81",
        "Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site", "Host: 127.0.0.1\r\nSec-Fetch-Site: same-site",
    ])
    func `shows frames to no other site`(fields: String) async throws {
        let log = FrameLog()
        let server = try await PageServer.start(PageSite(first: .motions, brokers: [:], frames: log))
        for request in ["GET /frames.json", "GET /frame.json?number=1", "GET /frames.pcapng", "POST /frames/pause"] {
            let answer = try await answer("\(request) HTTP/1.1", fields, from: server)
            #expect(answer.hasPrefix("HTTP/1.1 403 "), "\(request)")
        }
        // A form of another site may be sent without an origin by an old browser.
        let form = try await answer("POST /frames/pause HTTP/1.1", "Host: localhost", from: server)
        #expect(form.hasPrefix("HTTP/1.1 403 "))
        #expect(!log.isPaused)
        await server.stop()
    }

    @Test func `has nothing to tell without a log`() async throws {
        let server = try await PageServer.start(PageSite(first: .motions, brokers: [:]))
        let answer = try await answer("GET /frames.json HTTP/1.1", "Host: localhost", from: server)
        #expect(answer.hasPrefix("HTTP/1.1 404 "))
        await server.stop()
    }
}

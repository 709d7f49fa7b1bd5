import TestSupport
import Testing

/// The part of the campaign of hostile servers whose bounds are counts: connections opened, bytes sent, memory taken.
@Suite("Client: hostile servers", .turns)
struct HostileServerTests {
    #if os(Linux)
        @Test(arguments: [
            "mqtt-refuses-for-ever", "mqtt-closes-after-accepting-for-ever", "mqtt-redirects-to-itself-in-connack",
            "mqtt-connack-of-256-MB", "mqtt-connack-of-a-reason-of-15-MB", "mqtt-pubrel-flood-without-reading",
            "mqtt-publish-qos2-flood-without-reading", "mqtt-qos1-beyond-receive-maximum",
            "stomp-refuses-for-ever", "stomp-closes-after-accepting-for-ever", "stomp-message-with-a-million-headers",
            "websocket-endless-head", "websocket-close-flood", "proxy-http-wants-credentials-for-ever",
            "tls-a-handshake-message-of-16-MB",
        ])
        func `a client stays small and opens few connections`(scenario: String) async throws {
            let result = try await Tool.run(
                BuiltProgram.path("hostile-servers"), ["--seconds", "3", "--one", scenario])
            // 1 is also the end of a scenario that took too long: only time may be short here.
            let failures = result.text.split(separator: "!").dropFirst().joined()
            // The address sanitizer needs memory of its own.
            let isSanitized = Campaign.environment("ASAN_OPTIONS") != nil
            let isExceeded = failures.contains("at most") && !(isSanitized && failures.hasPrefix(" memory"))
            #expect(!isExceeded, "\(result.text)\(result.errors)")
            #expect([.exited(0), .exited(1)].contains(result.status))
        }

        @Test func `a server that ended a WebSocket after its handshake is not suspected to expect TLS`() async throws {
            var text = ""
            // The scenario's few seconds may pass before on a busy machine.
            let isTold = try await eventually {
                text = try await Tool.run(
                    BuiltProgram.path("hostile-servers"), ["--one", "websocket-closes-half-after-the-upgrade"]
                ).text
                return text.contains("ended the connection")
            }
            #expect(isTold && !text.contains("wss://"), "\(text)")
        }
    #endif
}

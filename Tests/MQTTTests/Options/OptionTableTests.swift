import MQTTCore
import MessagingShell
import TestSupport
import Testing

@testable import MQTT
@testable import Transport

/// The names of the TLS options behind a prefix; those that few programs set are stored in a box of their own.
func optionNames(ofTLS prefix: String) -> Set<String> {
    optionNames(of: TLSOptions(), prefix).subtracting(["\(prefix)rare"])
        .union(optionNames(of: RareTLSOptions(), prefix))
}

/// Each option of ``MQTTConfiguration`` has a row with a test that fails when the option has no effect.
@Suite("Options: every one has an effect", .turns)
struct OptionTableTests {
    static let rows =
        connectRows + connectingRows + serverRows + tlsRows + webSocketRows + reconnectRows + timeRows + messageRows

    @Test func `every option has a row, and every row is an option`() {
        var names = optionNames(of: MQTTConfiguration())
        names.formUnion(optionNames(of: NetworkOptions(), "network."))
        names.formUnion(optionNames(of: MQTTWill([], to: ""), "will."))
        names.formUnion(optionNames(ofTLS: "tls."))
        names.formUnion(optionNames(of: WebSocketOptions(), "webSocket."))
        names.formUnion(optionNames(of: ReconnectPolicy(), "reconnect."))
        names.formUnion(optionNames(of: MQTTUnmatchedMessagePolicy(), "unmatchedMessagePolicy."))
        let authentication = MQTTAuthentication(method: "") {
            nil
        } respond: { _ in
            nil
        }
        names.formUnion(optionNames(of: authentication, "authentication."))
        let rows = Self.rows.map(\.name)
        #expect(Set(rows).count == rows.count)
        #expect(names.subtracting(rows).sorted() == [])
        #expect(Set(rows).subtracting(names).sorted() == [])
    }

    @Test(arguments: rows.filter { $0.check != nil }) func `has an effect`(_ row: OptionRow) async throws {
        try await row.check?()
    }
}

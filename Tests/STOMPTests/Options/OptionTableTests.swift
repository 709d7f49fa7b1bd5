import STOMP
import STOMPCore
import TestSupport
import Testing

/// Each option of ``STOMPConfiguration`` has a row with a test that fails when the option has no effect.
///
/// The options inside `tls`, `webSocket` and `reconnect` have their rows in the table of MQTT, whose client shares them.
@Suite("Options: every one has an effect", .turns)
struct OptionTableTests {
    static let rows = connectRows + serverRows + layerRows + boundRows

    @Test func `every option has a row, and every row is an option`() {
        var names = optionNames(of: STOMPConfiguration())
        names.formUnion(optionNames(of: NetworkOptions(), "network."))
        names.formUnion(optionNames(of: STOMPLimits(), "limits."))
        // The one of these that is STOMP's alone.
        names.insert("webSocket.sendsText")
        let rows = Self.rows.map(\.name)
        #expect(Set(rows).count == rows.count)
        #expect(names.subtracting(rows).sorted() == [])
        #expect(Set(rows).subtracting(names).sorted() == [])
    }

    @Test(arguments: rows.filter { $0.check != nil }) func `has an effect`(_ row: OptionRow) async throws {
        try await row.check?()
    }
}

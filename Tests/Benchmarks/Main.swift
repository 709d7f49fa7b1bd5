import Foundation

/// Prints the table. `benchmarks [--rounds N] [--scale X] [ROW …]`, where a row is named as below, or by how its name
/// begins, and X multiplies the number of messages (for profilers, which are slow).
@main
enum Main {
    static func main() async throws {
        Allocations.startCounting()
        var arguments = Array(CommandLine.arguments.dropFirst())
        func option<Value: LosslessStringConvertible & Sendable>(_ name: String, _ fallback: Value) -> Value {
            guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count else { return fallback }
            defer { arguments.removeSubrange(index...(index + 1)) }
            return Value(arguments[index + 1]) ?? fallback
        }
        let rounds = option("--rounds", 3)
        let scale = option("--scale", 1.0)
        let wanted = arguments
        func wants(_ name: String) -> Bool { wanted.isEmpty || wanted.contains { name.hasPrefix($0) } }

        defer { try? FileManager.default.removeItem(at: Shell.directory) }
        let (broker, port) = try Shell.serve(try Shell.compile("mqtt_broker"))
        defer { broker.terminate() }
        let mqtt = MQTTRows(port: port, limit: try Shell.compile("mqtt_limit"), rounds: rounds, scale: scale)
        print(Row.header)
        func show(_ row: Row) {
            print(row.line)
            fflush(nil)
        }
        if wants("codec") { for row in try await CodecRows(rounds: rounds, scale: scale).all() { show(row) } }
        if wants("mqtt-publish-single") { show(try await mqtt.publishSingly()) }
        if wants("mqtt-publish-array") { show(try await mqtt.publishArrays()) }
        if wants("mqtt-receive") {
            for reading in MQTTRows.Reading.allCases { show(try await mqtt.receive(reading)) }
        }
        if wants("mqtt-window") {
            show(try await mqtt.windowByArray())
            for place in MQTTRows.Place.allCases { show(try await mqtt.windowByTasks(place)) }
        }
        if wants("mqtt-roundtrip") {
            for place in MQTTRows.Place.allCases { for row in try await mqtt.roundTrip(place) { show(row) } }
        }

        let (stompBroker, stompPort) = try Shell.serve(try Shell.compile("stomp_broker"))
        defer { stompBroker.terminate() }
        let stomp = STOMPRows(port: stompPort, limit: try Shell.compile("stomp_limit"), rounds: rounds, scale: scale)
        if wants("stomp-send") { show(try await stomp.send()) }
        if wants("stomp-receive") { show(try await stomp.receive()) }
        if wants("stomp-receipts") { show(try await stomp.receipts()) }
    }
}

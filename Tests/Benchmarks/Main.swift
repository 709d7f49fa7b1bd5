import Foundation

/// Prints the table. `benchmarks [--rounds N] [ROW …]`, where a row is named as below, or by how its name begins.
@main
enum Main {
    static func main() async throws {
        var arguments = Array(CommandLine.arguments.dropFirst())
        var rounds = 3
        if let index = arguments.firstIndex(of: "--rounds"), index + 1 < arguments.count {
            rounds = Int(arguments[index + 1]) ?? rounds
            arguments.removeSubrange(index...(index + 1))
        }
        let wanted = arguments
        func wants(_ name: String) -> Bool { wanted.isEmpty || wanted.contains { name.hasPrefix($0) } }

        defer { try? FileManager.default.removeItem(at: Shell.directory) }
        let (broker, port) = try Shell.serve(try Shell.compile("mqtt_broker"))
        defer { broker.terminate() }
        let mqtt = MQTTRows(port: port, limit: try Shell.compile("mqtt_limit"), rounds: rounds)
        print(Row.header)
        func show(_ row: Row) {
            print(row.line)
            fflush(nil)
        }
        if wants("mqtt-publish") { show(try await mqtt.publishSingly()) }
        if wants("mqtt-publish-array") { show(try await mqtt.publishArrays()) }
        if wants("mqtt-receive") {
            for reading in MQTTRows.Reading.allCases { show(try await mqtt.receive(reading)) }
        }
        if wants("mqtt-window") {
            show(try await mqtt.windowByArray())
            show(try await mqtt.windowByTasks())
        }
        if wants("mqtt-roundtrip") { for row in try await mqtt.roundTrip() { show(row) } }

        let (stompBroker, stompPort) = try Shell.serve(try Shell.compile("stomp_broker"))
        defer { stompBroker.terminate() }
        let stomp = STOMPRows(port: stompPort, limit: try Shell.compile("stomp_limit"), rounds: rounds)
        if wants("stomp-send") { show(try await stomp.send()) }
        if wants("stomp-receive") { show(try await stomp.receive()) }
        if wants("stomp-receipts") { show(try await stomp.receipts()) }
    }
}

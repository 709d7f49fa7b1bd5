import Foundation
import MQTT
import Recipe

await recipe(
    """
    Publishes messages over MQTT, as mosquitto_pub does.
    Usage: publish -t TOPIC [-m TEXT] [-f FILE] [-l] [-s] [-n] [options]

      -t, --topic TOPIC          where to
      -m, --message TEXT         a message with this text
      -f, --file FILE            a message with the bytes of a file
      -l, --lines                a message for each line of standard input
      -s, --stdin                a message with all of standard input
      -n, --null                 a message without a payload, which deletes a retained one
      -q, --qos QOS              0, 1 or 2 (default 0)
      -r, --retain               the broker keeps the last message of the topic
      -b, --broker URL           mqtt:, mqtts:, ws:, wss: or unix: (default mqtt://localhost)
      -i, --id ID                client identifier; each % becomes two random hexadecimal digits (default publish-%%%%)
      --will-topic TOPIC         where the broker publishes a will if the program is killed
      --will-payload TEXT        its payload
      --will-qos QOS             its quality of service (default 0)
      --will-retain              the broker keeps it
      -p, --property NAME=VALUE  a user property; may be repeated (this and the next two use MQTT 5.0)
      --content-type TYPE        the MIME type of the payload
      --expiry SECONDS           how long the broker keeps the message for those who are away
    """
) { options in
    guard let topic = options["--topic"] else { throw UsageError("A --topic is missing.") }
    guard ["--message", "--file", "--lines", "--stdin", "--null"].contains(where: options.has) else {
        throw UsageError("There is nothing to publish: give a --message, for example.")
    }
    let qos = try options.qos("--qos")

    let properties = try options.properties()
    var configuration = try options.mqttConfiguration(clientID: "publish-%%%%")
    if !properties.isEmpty { configuration.version = .v5_0 }
    // Lines wait for a connection that was lost, and standard input for lines.
    configuration.queuesQoS0WhileOffline = true
    configuration.queueOverflow = .wait

    var payloads: [[UInt8]] = []
    if let text = options["--message"] { payloads.append(Array(text.utf8)) }
    if let path = options["--file"] {
        guard let data = await reading({ FileManager.default.contents(atPath: path) }) else {
            throw UsageError("Cannot read \(path).")
        }
        payloads.append(Array(data))
    }
    if options.has("--null") { payloads.append([]) }
    if options.has("--stdin") {
        payloads.append(Array(await reading { FileHandle.standardInput.readDataToEndOfFile() } ?? Data()))
    }
    try Task.checkCancellation()

    let client = MQTTClient(options["--broker"] ?? "mqtt://localhost", configuration: configuration)
    try await client.withConnection { client in
        func publish(_ payload: [UInt8]) async throws {
            try await client.publish(
                payload, to: topic, qos: qos, retain: options.has("--retain"), properties: properties)
        }
        for payload in payloads { try await publish(payload) }
        if options.has("--lines") {
            for await line in inputLines() { try await publish(Array(line.utf8)) }
            // Disconnecting would drop lines that still wait.
            try await client.connect()
        }
    }
}

extension Options {
    /// The properties that the options ask for.
    fileprivate func properties() throws -> MQTTProperties {
        var properties: MQTTProperties = []
        properties.contentType = self["--content-type"]
        properties.messageExpiryInterval = try number("--expiry", in: 0...0xffff_ffff).map { UInt32($0) }
        for property in all("--property") {
            let pair = property.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2 else { throw UsageError("A property is NAME=VALUE, not '\(property)'.") }
            properties.append(.userProperty(String(pair[0]), String(pair[1])))
        }
        return properties
    }
}

import MQTT
import Recipe

await recipe(
    """
    Prints messages that arrive over MQTT, as mosquitto_sub does.
    Usage: subscribe -t FILTER… [options]

      -t, --topic FILTER     what to subscribe to, with + and # as wildcards; may be repeated
      -q, --qos QOS          the highest quality of service to ask for: 0, 1 or 2 (default 0)
      -C, --count NUMBER     end after this many messages
      -W, --timeout SECONDS  end this long after subscribing
      -R, --no-retained      skip messages that the broker had retained
      -F, --format FORMAT    what to print: %t topic, %p payload, %x payload in hexadecimal, %l its length, %q QoS,
                             %r retained (0 or 1), %c content type, %P user properties, %% a percent sign (default %p)
      -v, --verbose          the same as --format '%t %p'
      -b, --broker URL       mqtt:, mqtts:, ws:, wss: or unix: (default mqtt://localhost)
      -i, --id ID            client identifier; each % becomes two random hexadecimal digits (default subscribe-%%%%)
      -c, --keep-session     the broker keeps messages while the program is away, with --mqtt5 for a day; needs an --id
                             and a --qos of 1 or 2
      -5, --mqtt5            MQTT 5.0 instead of 3.1.1
      --will-topic TOPIC     where the broker publishes a will if the program is killed
      --will-payload TEXT    its payload
      --will-qos QOS         its quality of service (default 0)
      --will-retain          the broker retains it
    """
) { options in
    let qos = try options.qos("--qos")
    let requests = options.all("--topic").map { MQTTSubscriptionRequest(filter: $0, qos: qos) }
    guard !requests.isEmpty else { throw UsageError("A --topic is missing.") }
    let limit = try options.number("--count", in: 1...Int.max)
    let format = options["--format"] ?? (options.has("--verbose") ? "%t %p" : "%p")

    var configuration = try options.mqttConfiguration(clientID: "subscribe-%%%%")
    if options.has("--mqtt5") { configuration.version = .v5_0 }
    if options.has("--keep-session") {
        guard options["--id"] != nil else { throw UsageError("--keep-session needs an --id to come back with.") }
        configuration.cleanStart = false
        configuration.sessionExpiry = .seconds(86_400)
    }
    let client = MQTTClient(options["--broker"] ?? "mqtt://localhost", configuration: configuration)
    let seconds = try options.number("--timeout")
    // What the session has kept and this run does not print is for the next one: the client must not acknowledge it.
    let acknowledgement: MQTTAcknowledgement = options.has("--keep-session") ? .manual : .automatic
    // Before the client connects: what the session has kept comes to this sequence.
    let messages = client.subscription(to: requests, acknowledgement: acknowledgement)
    let events = client.events
    let refusals = Task {
        // That of a single filter is thrown by the sequence.
        for await case .subscriptionLost(let filter, let code) in events where requests.count > 1 {
            complain("The broker refused \(filter): \(code).")
        }
    }
    defer { refusals.cancel() }
    try await client.withConnection { client in
        if let seconds {
            Task {
                try await Task.sleep(for: .seconds(seconds))
                await client.disconnect()
            }
        }
        var count = 0
        do throws(MQTTError) {
            for try await message in messages {
                if !(message.isRetained && options.has("--no-retained")) {
                    print(message.formatted(format))
                    count += 1
                }
                message.acknowledge()
                if count == limit { break }
            }
        } catch {
            // Cancelled by Ctrl-C.
            guard error.code == .cancelled else { throw error }
        }
    }
    // A session keeps its subscriptions if they are released after the client has disconnected.
    withExtendedLifetime(messages) {}
}

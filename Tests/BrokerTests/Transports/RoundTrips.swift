import MQTT
import STOMP
import TestSupport
import Testing

extension TLSOptions {
    /// Trusts the tests' authority and nobody else.
    static func trusting(_ certificates: Certificates) -> TLSOptions {
        var options = TLSOptions()
        options.trust = .authorities([.file(certificates.authority.certificate)])
        return options
    }
}

/// A mebibyte whose bytes depend on their place.
let largeBody = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

/// One large message and many small ones, there and back.
func roundTrip(
    _ client: MQTTClient, topic: String, qos: QoS = .atLeastOnce, large: [UInt8] = largeBody
) async throws {
    try await client.connect()
    let messages = try await client.subscribe(to: topic, qos: qos)
    try await client.publish(large, to: topic, qos: qos)
    let small = (0..<500).map { MQTTOutgoingMessage(Array("\($0)".utf8), to: topic, qos: qos) }
    async let published: Void = client.publish(small).check()
    var count = 0
    for try await message in messages {
        if count == 0 {
            #expect(message.bytes == large)
        } else {
            #expect(message.text == "\(count - 1)")
        }
        count += 1
        if count > small.count { break }
    }
    try await published
    await client.disconnect()
}

/// One large message and many small ones, there and back.
func roundTrip(_ client: STOMPClient, queue: String, large: [UInt8] = largeBody) async throws {
    try await client.connect()
    let messages = try await client.subscribe(to: queue)
    try await client.sendAndConfirm(
        large, to: queue, options: STOMPSendOptions(contentType: "application/octet-stream"))
    for number in 0..<500 { try await client.send("\(number)", to: queue) }
    var count = 0
    for try await message in messages {
        if count == 0 {
            #expect(message.bytes == large)
        } else {
            #expect(message.text == "\(count - 1)")
        }
        count += 1
        if count > 500 { break }
    }
    await client.disconnect()
}

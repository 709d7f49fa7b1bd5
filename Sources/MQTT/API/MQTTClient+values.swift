public import MQTTCore
public import Messaging

extension MQTTClient {
    /// Publishes a value in a format; with 5.0 the content type says which, unless `properties` say something else.
    /// Otherwise as ``publish(_:to:qos:retain:properties:)-([UInt8],_,_,_,_)``.
    ///
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the value cannot be written.
    @discardableResult
    public nonisolated(nonsending) func publish<Value: Encodable & Sendable>(
        _ value: Value, as coding: some PayloadCoding, to topic: String, qos: QoS = .atMostOnce, retain: Bool = false,
        properties: MQTTProperties = MQTTProperties()
    ) async throws(MQTTError) -> MQTTReasonCode {
        let payload: [UInt8]
        do {
            payload = try coding.encode(value)
        } catch {
            throw MQTTError(
                .invalidRequest, "the \(Value.self) cannot be written as \(coding.contentType): \(error)",
                underlying: error)
        }
        var properties = properties
        if speaksProperties, properties.contentType == nil { properties.contentType = coding.contentType }
        return try await publish(payload, to: topic, qos: qos, retain: retain, properties: properties)
    }
}

extension MQTTMessage {
    /// The value in the payload. A message that says another content type is not tried; one that says none is.
    public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, as coding: some PayloadCoding
    ) throws(DecodeFailure) -> Value {
        try coding.value(of: type, from: payload, mediaType: mediaType).get()
    }
}

extension MQTTSubscription {
    /// The messages with their values. What cannot be decoded is an element too, and what comes after it follows; with
    /// automatic acknowledgement it is acknowledged all the same [MQTT-4.5.0-2].
    public func values<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, as coding: some PayloadCoding
    ) -> MQTTDecodedMessages<Value> {
        MQTTDecodedMessages(subscription: self) { message in
            Result { () throws(DecodeFailure) in try message.value(type, as: coding) }
        }
    }

    /// The same in a format of the caller's own, as that of generated types:
    ///
    ///     for try await reading in readings.values({ try Reading(serializedBytes: $0.bytes) }) { … }
    public func values<Value: Sendable>(
        _ decode: @escaping @Sendable (MQTTMessage) throws -> Value
    ) -> MQTTDecodedMessages<Value> {
        MQTTDecodedMessages(subscription: self) { message in
            do {
                return .success(try decode(message))
            } catch {
                return .failure(DecodeFailure(message, holdsNo: Value.self, error))
            }
        }
    }
}

extension MQTTMessage {
    /// The type and subtype that the message says, in small letters.
    var mediaType: String? { properties.contentType.map(MediaType.name(in:)) }

    /// What a decoder of the caller's own makes of the payload.
    func value<Value>(_ decode: ([UInt8]) throws -> Value) -> Result<Value, DecodeFailure> {
        do {
            return .success(try decode(bytes))
        } catch {
            return .failure(DecodeFailure(self, holdsNo: Value.self, error))
        }
    }
}

extension DecodeFailure {
    init<Value>(_ message: MQTTMessage, holdsNo type: Value.Type, _ error: any Error) {
        self.init("\(message.payload.count) bytes do not hold a \(type): \(error)", underlying: error)
    }
}

enum MediaType {
    /// Type and subtype, in small letters and without parameters.
    static func name(in contentType: String) -> String {
        let name = contentType.utf8.prefix { $0 != UInt8(ascii: ";") }.filter { $0 != UInt8(ascii: " ") }
        return String(decoding: name, as: UTF8.self).lowercased()
    }
}

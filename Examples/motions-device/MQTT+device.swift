package import DeviceSupport
import Inspector
package import MQTT

extension MQTTConfiguration {
    init(_ options: MotionsOptions, deviceID: String) {
        self.init(clientID: deviceID)
        keepAlive = .seconds(options.keepAlive)
        cleanStart = !options.keepsSession
        let payload = #"{"deviceID":\#(JSON.quoted(deviceID))}"#
        will = MQTTWill(Array(payload.utf8), to: "/mwm/lastWill", qos: .exactlyOnce)
        credentials = options.common.credentials
        reconnect = options.common.reconnectPolicy
        tls = options.common.tls
    }
}

extension MQTTPacketRecord: DeviceFrame {}

extension MQTTClient: DeviceClient {
    package nonisolated var connectionCount: Int { counters.connections }

    package nonisolated func publishForVisitor(_ payload: [UInt8], to topic: String) async throws {
        try await publish(payload, to: topic, qos: .atLeastOnce)
    }

    package static func final(_ failure: MQTTError) -> DeviceFailure {
        if failure.code != .connectionLost, failure.code != .noCredentials,
            let error = failure.underlying as? TransportError
        {
            return DeviceFailure(connecting: error)
        }
        let status: ExitStatus
        switch failure.code {
        case .connectFailed, .refused, .notAllowed: status = .unavailable
        case .badCredentials: status = .noPermission
        case .unsupportedVersion, .protocolError: status = .protocolError
        case .invalidRequest: status = .usage
        case .connectionLost, .notConnected, .disconnected, .timedOut, .takenOver: status = .lost
        default: status = .software
        }
        return DeviceFailure(status, DeviceFailure.withoutAdviceToProgrammers(failure.message))
    }

    package static func kind(_ failure: MQTTError) -> ConnectionFailureKind {
        switch failure.code {
        case .connectionLost, .notConnected, .disconnected: .lost
        case .protocolError: .protocolError
        default: .other
        }
    }
}

extension DeviceFailure {
    /// A subscription that failed, now or after a reconnect.
    init(subscribing failure: MQTTError) {
        self = MQTTClient.final(failure)
        if failure.code == .refused { status = .noPermission }
    }
}

package import DeviceSupport
package import STOMP

extension STOMPConfiguration {
    init(_ options: LocationsOptions, deviceID: String) {
        self.init()
        clientID = deviceID
        host = options.virtualHost
        outgoingHeartBeat = .milliseconds(options.heartBeatOut)
        incomingHeartBeat = .milliseconds(options.heartBeatIn)
        // A connection that is dead is noticed by its heart-beats, and then its receipts fail: their own time-out must
        // not come first, or fixes that only wait for the network would be sent twice.
        requestTimeout = .milliseconds(max(30_000, 3 * options.heartBeatIn))
        credentials = options.common.credentials
        reconnect = options.common.reconnectPolicy
        tls = options.common.tls
    }
}

extension STOMPSendOptions {
    /// What goes out with each fix.
    init(_ options: LocationsOptions) {
        self.init(
            contentType: LocationPayload.contentType, priority: options.priority, expiresAfter: options.expires)
        if let country = options.country { headers.add("country", country) }
    }
}

extension STOMPFrameRecord: DeviceFrame {}

extension STOMPClient: DeviceClient {
    package nonisolated var connectionCount: Int { counters.connections }

    package nonisolated func publishForVisitor(_ payload: [UInt8], to topic: String) async throws {
        try await sendAndConfirm(payload, to: topic)
    }

    package static func final(_ failure: STOMPError) -> DeviceFailure {
        if failure.code != .connectionLost, failure.code != .noCredentials,
            let error = failure.underlying as? TransportError
        {
            return DeviceFailure(connecting: error)
        }
        let status: ExitStatus
        switch failure.code {
        case .connectFailed, .refused, .unsupportedByBroker: status = .unavailable
        case .badCredentials: status = .noPermission
        case .unsupportedVersion, .protocolError: status = .protocolError
        case .invalidRequest: status = .usage
        case .connectionLost, .notConnected, .disconnected, .timedOut, .stale: status = .lost
        default: status = .software
        }
        return DeviceFailure(status, DeviceFailure.withoutAdviceToProgrammers(failure.message))
    }

    package static func kind(_ failure: STOMPError) -> ConnectionFailureKind {
        switch failure.code {
        case .connectionLost, .notConnected, .disconnected: .lost
        case .protocolError: .protocolError
        default: .other
        }
    }
}

extension DeviceFailure {
    /// A subscription that failed, now or after a reconnect.
    init(subscribing failure: STOMPError) {
        self = STOMPClient.final(failure)
        if failure.code == .refused { status = .noPermission }
    }
}

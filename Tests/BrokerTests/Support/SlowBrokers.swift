import MQTT
import STOMP

// On a machine whose cores are all busy, a broker may take half a minute for one handshake. No test here is about that.

extension MQTTConfiguration {
    /// Limits on time that only a broker which hangs exceeds.
    mutating func allowSlowBrokers() {
        connectTimeout = .seconds(150)
        requestTimeout = .seconds(150)
    }
}

extension STOMPConfiguration {
    /// Limits on time that only a broker which hangs exceeds.
    mutating func allowSlowBrokers() {
        connectTimeout = .seconds(150)
        requestTimeout = .seconds(150)
        outgoingHeartBeat = .seconds(60)
        incomingHeartBeat = .seconds(60)
    }
}

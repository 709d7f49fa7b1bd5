import MQTT
import STOMP
import TestSupport

// On a machine whose cores are all busy, a broker may take half a minute for one handshake. No test here is about that.

extension MQTTConfiguration {
    /// Limits on time that only a broker which hangs exceeds.
    mutating func allowSlowBrokers() {
        connectTimeout = .patience
        requestTimeout = .patience
    }
}

extension STOMPConfiguration {
    /// Limits on time that only a broker which hangs exceeds.
    mutating func allowSlowBrokers() {
        connectTimeout = .patience
        requestTimeout = .patience
        outgoingHeartBeat = .seconds(60)
        incomingHeartBeat = .seconds(60)
    }
}

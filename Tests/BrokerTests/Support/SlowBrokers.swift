import MQTT
import STOMP
import TestSupport

// On a machine whose cores are all busy, a broker may take half a minute for one handshake. No test here is about that.

extension MQTTConfiguration {
    /// Limits on time that only a broker which hangs exceeds. A broker that got no processor time for seconds may end a connection
    /// before it accepts it, by limits of its own.
    mutating func allowSlowBrokers() {
        connectTimeout = .patience
        requestTimeout = .patience
        reconnect.firstConnectAttempts = 3
    }
}

extension STOMPConfiguration {
    /// Limits on time that only a broker which hangs exceeds, as for MQTT.
    mutating func allowSlowBrokers() {
        connectTimeout = .patience
        requestTimeout = .patience
        reconnect.firstConnectAttempts = 3
        outgoingHeartBeat = .seconds(60)
        incomingHeartBeat = .seconds(60)
    }
}

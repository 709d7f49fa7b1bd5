import MQTTCore
import Messaging
import Transport

extension MQTTConfiguration {
    /// What the engine is told; `clientID` is expanded here, once for the life of the client.
    var engineConfiguration: MQTTEngineConfiguration {
        var engine = MQTTEngineConfiguration(role: .client, version: version, clientID: Self.expand(clientID))
        engine.cleanStart = cleanStart
        engine.keepAlive = UInt16(clamping: keepAlive.components.seconds)
        engine.sessionExpiry = UInt32(clamping: sessionExpiry.components.seconds)
        engine.will = will
        engine.receiveMaximum = receiveMaximum
        engine.maximumPacketSize = UInt32(clamping: maximumPacketSize)
        engine.maximumInFlight = inFlightLimit(version)
        engine.connectProperties = connectProperties
        engine.authenticationMethod = authentication?.method
        engine.republishesAfterSessionLoss = republishesAfterSessionLoss
        engine.topicAliasMaximum = topicAliasMaximum
        engine.outboundTopicAliasMaximum = outboundTopicAliasMaximum
        engine.queuesQoS0WhileDisconnected = queuesQoS0WhileOffline
        engine.queueCountLimit = queueLimit
        engine.queueByteLimit = queueByteLimit
        engine.connectTimeout = requestTimeout.inNanoseconds
        engine.pingTimeout = pingTimeout.inNanoseconds
        engine.requestTimeout = requestTimeout.inNanoseconds
        // The server may have kept what an earlier process of this client left there.
        engine.acceptsUnknownSession = true
        return engine
    }

    func inFlightLimit(_ version: MQTTVersion) -> UInt16 {
        maximumInFlight ?? (version == .v5_0 ? 1024 : 20)
    }
}

extension MQTTEngineConfiguration {
    mutating func use(_ credentials: Credentials?) {
        username = credentials?.userName
        password = credentials?.password.map { Array($0.utf8) }
    }
}

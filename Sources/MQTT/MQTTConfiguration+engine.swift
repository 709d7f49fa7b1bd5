import MQTTCore
import Messaging
import Transport
import Wire

extension MQTTConfiguration {
    /// What the engine is told; `clientID` is expanded here, once for the life of the client.
    var engineConfiguration: MQTTEngineConfiguration {
        var engine = rest.derived.engine
        engine.clientID = Self.expand(clientID)
        return engine
    }

    func inFlightLimit(_ version: MQTTVersion) -> UInt16 { rest.values.inFlightLimit(version) }

    /// The client identifier with each `%` replaced by two random hexadecimal digits.
    static func expand(_ template: String) -> String {
        var result = ""
        for scalar in template.unicodeScalars {
            if scalar == "%" {
                let byte = UInt8.random(in: 0...255)
                if byte < 16 { result += "0" }
                result += String(byte, radix: 16)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension MQTTConfiguration.Values {
    var streamOptions: StreamOptions {
        var options = StreamOptions()
        options.proxy = proxy
        options.tls = tls
        options.webSocket = webSocket
        options.subprotocols = [version == .v3_1 ? "mqttv3.1" : "mqtt"]
        options.schemes = [.mqtt, .mqtts, .ws, .wss, .unix]
        return options
    }

    /// Without the client identifier.
    var engineConfiguration: MQTTEngineConfiguration {
        var engine = MQTTEngineConfiguration(role: .client, version: version)
        engine.cleanStart = cleanStart
        engine.keepAlive = UInt16(clamping: keepAlive.components.seconds)
        engine.sessionExpiry = UInt32(clamping: sessionExpiry.components.seconds)
        engine.will = will
        engine.receiveMaximum = receiveMaximum
        engine.maximumPacketSize = UInt32(clamping: maximumPacketSize)
        engine.maximumControlPacketSize = UInt32(clamping: maximumControlPacketSize)
        engine.maximumInFlight = inFlightLimit(version)
        engine.connectProperties = connectProperties
        engine.authenticationMethod = authentication?.method
        engine.republishesAfterSessionLoss = republishesAfterSessionLoss
        engine.topicAliasMaximum = topicAliasMaximum
        engine.outboundTopicAliasMaximum = outboundTopicAliasMaximum
        engine.subscribesFirst = true
        engine.dropsInvalidMessages = dropsInvalidMessages
        engine.maximumQueuedMessages = maximumQueuedMessages
        engine.maximumQueuedBytes = maximumQueuedBytes
        engine.connectTimeout = connectTimeout.inNanoseconds
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
        userName = credentials?.userName
        password = credentials?.password.map { Array($0.utf8) }
    }
}

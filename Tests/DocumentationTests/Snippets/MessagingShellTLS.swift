// The code of Sources/MessagingShell/MessagingShell.docc/TLS.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT
import STOMP

func makePinnedClient() -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-1")
    configuration.tls.pinnedKeys = [
        "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",  // The server's.
        "sha256/x4QzPSC810K5/cMjb05Qm4k3Bw5zBn4lTdO/nEW/Td4=",  // The next one's, which is in a safe.
    ]
    return MQTTClient("mqtts://broker.example.com", configuration: configuration)
}

func makeCheckingClient(isBlocked: @escaping @Sendable ([UInt8]) -> Bool) -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-1")
    configuration.tls.additionalCheck = { certificates, serverName in
        if certificates.contains(where: isBlocked) {
            throw TransportError(.certificateRefused, "A certificate of \(serverName) is on our list.")
        }
    }
    return MQTTClient("mqtts://broker.example.com", configuration: configuration)
}

func makeRevocationClient() -> STOMPClient {
    var configuration = STOMPConfiguration()
    configuration.tls.revocation = .required
    return STOMPClient("stomps://broker.example.com", configuration: configuration)
}

func makeKeyClient(secret: String) -> MQTTClient? {
    var configuration = MQTTConfiguration(clientID: "meter-7")
    configuration.tls.preSharedKey = TLSPreSharedKey(identity: "meter-7", hexadecimal: secret)
    guard configuration.tls.preSharedKey != nil else { return nil }
    return MQTTClient("mqtts://broker.example.com", configuration: configuration)
}

func makeTokenClient(pin: String) -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-1")
    configuration.tls.identity = .stored(
        key: "org.openssl.engine:pkcs11:pkcs11:token=meter;object=key;type=private",
        certificates: .file("/etc/meter/client.pem"), pin: pin)
    return MQTTClient("mqtts://broker.example.com", configuration: configuration)
}

func makeLoggedClient() -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-1")
    #if DEBUG
        configuration.tls.keyLogFile = "/tmp/meter-keys.log"
    #endif
    return MQTTClient("mqtts://broker.example.com", configuration: configuration)
}

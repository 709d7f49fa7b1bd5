import Foundation
import LoopbackBroker
import MQTT
import TestSupport
import Testing

/// The samples of the articles for phones, run against a broker.
@Suite(.turns) struct PhoneSampleTests {
    @MainActor @Test func `The view model shows states and messages, through the background and back`() async throws {
        let broker = try await LoopbackBroker.start()
        let url = try #require(broker.urls.mqtt)
        let door = MQTTClient(url, clientID: "door")
        try await door.connect()
        let model = DoorModel(client: MQTTClient(url, clientID: "app"))
        let running = Task { await model.run() }
        try await door.publish("open", to: "house/front/door", retain: true)
        #expect(await eventually { @MainActor in model.doors == ["front": "open"] && model.status == "online" })
        await model.enteredBackground()
        #expect(await eventually { @MainActor in model.status == "offline" })
        try await door.publish("closed", to: "house/front/door", qos: .atLeastOnce, retain: true)
        #expect(model.doors == ["front": "open"])
        model.becameActive()
        #expect(await eventually { @MainActor in model.doors == ["front": "closed"] && model.status == "online" })
        #expect(model.problem == nil)
        running.cancel()
        await running.value
        await door.disconnect()
        await broker.stop()
    }

    @Test(.requires(program: "openssl"))
    func `An authority of one's own, a client certificate and TLS 1.3 are enough for a company's broker`() async throws
    {
        let certificates = try await Certificates.make()
        var options = LoopbackBrokerOptions()
        options.tls = TLSServerOptions(
            identity: TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key)))
        options.tls?.clientAuthorities = [.file(certificates.authority.certificate)]
        let broker = try await LoopbackBroker.start(options)
        let url = "mqtts://localhost:\(broker.ports.mqtts ?? 0)"
        // The same certificate as PEM, as PEM in a file that ends in .crt, and as DER.
        let crt = certificates.authority.certificate + ".crt"
        try FileManager.default.copyItem(atPath: certificates.authority.certificate, toPath: crt)
        for authority in [certificates.authority.certificate, crt, certificates.authorityDER] {
            let configuration = makeCompanyConfiguration(
                authority: authority, client: certificates.clientPKCS12, passphrase: certificates.clientKeyPassword)
            #expect(configuration.tls.minimumVersion == .tls13)
            try await MQTTClient(url, configuration: configuration).withConnection { client in
                try await client.publish("x", to: "company", qos: .atLeastOnce)
            }
        }
        var nameless = makeCompanyConfiguration(
            authority: crt, client: certificates.clientPKCS12, passphrase: certificates.clientKeyPassword)
        nameless.tls.identity = nil
        let client = MQTTClient(url, configuration: nameless)
        await #expect(throws: MQTTError.self) { try await client.connect() }
        await broker.stop()
    }
}

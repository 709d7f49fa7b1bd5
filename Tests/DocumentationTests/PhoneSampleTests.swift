import ClientTestSupport
import Foundation
import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Testing

/// The samples of the articles for phones, run against a broker.
@Suite(.turns) struct PhoneSampleTests {
    @MainActor @Test func `The view model shows states and messages, through the background and back`() async throws {
        let broker = try await LoopbackBroker.judged()
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
        #expect(model.problem == nil)
        await door.disconnect()
        await broker.stop()
    }

    @MainActor @Test func `The view model comes back when other credentials are tried`() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "ann", password: "right")]
        let broker = try await LoopbackBroker.judged(options)
        let password = Mutex("wrong")
        var configuration = MQTTConfiguration(clientID: "app")
        configuration.credentialsProvider = { _ in
            Credentials(userName: "ann", password: password.withLock { $0 })
        }
        let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration)
        let model = DoorModel(client: client)
        let running = Task { await model.run() }
        #expect(await eventually { @MainActor in model.problem != nil })
        #expect(!client.state.isConnected)
        password.withLock { $0 = "right" }
        let again = Task { await model.tryAgain() }
        #expect(await eventually { @MainActor in model.status == "online" && model.problem == nil })
        for task in [running, again] {
            task.cancel()
            await task.value
        }
        await client.disconnect()
        await broker.stop()
    }

    @MainActor @Test func `A line that is sent without a connection is marked when the server has it`() async throws {
        let broker = try await LoopbackBroker.judged()
        let client = MQTTClient(broker.urls.mqtt ?? "", clientID: "app")
        try await client.connect()
        await client.suspend()
        let model = ChatModel(client: client)
        let sending = Task { await model.send("hello") }
        #expect(await eventually { @MainActor in model.lines.first?.state == .waitingForServer })
        client.resume()
        await sending.value
        #expect(model.lines.map(\.state) == [.sent])
        await client.disconnect()
        await model.send("too late")
        guard case .notSent(let reason) = model.lines.last?.state, !reason.isEmpty else {
            Issue.record("\(model.lines)")
            return
        }
        await model.tryAgain()
        #expect(model.lines.map(\.state) == [.sent, .sent])
        #expect(broker.statistics.messagesIn == 2)
        await client.disconnect()
        await broker.stop()
    }

    @MainActor @Test func `A button publishes a command, or shows why it cannot`() async throws {
        let broker = try await LoopbackBroker.judged()
        let client = MQTTClient(broker.urls.mqtt ?? "", clientID: "app")
        let model = DoorModel(client: client)
        model.open("front")
        #expect(await eventually { @MainActor in model.problem?.contains("not connected") == true })
        try await client.connect()
        var arrivals = broker.arrivals().makeAsyncIterator()
        model.open("front")
        let command = await arrivals.next()
        #expect(command?.topic == "house/front/door/command" && command?.text == "open")
        await client.disconnect()
        await broker.stop()
    }

    @Test
    func `An authority of one's own, a client certificate and TLS 1.3 are enough for a company's broker`() async throws
    {
        let certificates = Certificates()
        var options = LoopbackBrokerOptions()
        options.tls = TLSServerOptions(
            identity: TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key)))
        options.tls?.clientAuthorities = [.file(certificates.authority.certificate)]
        let broker = try await LoopbackBroker.judged(options)
        let url = "mqtts://localhost:\(broker.ports.mqtts ?? 0)"
        // The same certificate as PEM, as PEM in a file that ends in .crt, and as DER.
        let scratch = try ScratchDirectory("company")
        let crt = scratch.file("authority.crt")
        try FileManager.default.copyItem(atPath: certificates.authority.certificate, toPath: crt)
        for authority in [certificates.authority.certificate, crt, certificates.authorityDER] {
            let configuration = makeCompanyConfiguration(
                authority: authority, client: certificates.client.container, passphrase: certificates.passphrase)
            #expect(configuration.tls.minimumVersion == .tls13)
            try await MQTTClient(url, configuration: configuration).withConnection { client in
                try await client.publish("x", to: "company", qos: .atLeastOnce)
            }
        }
        var nameless = makeCompanyConfiguration(
            authority: crt, client: certificates.client.container, passphrase: certificates.passphrase)
        nameless.tls.identity = nil
        let client = MQTTClient(url, configuration: nameless)
        await #expect(throws: MQTTError.self) { try await client.connect() }
        await broker.stop()
    }
}

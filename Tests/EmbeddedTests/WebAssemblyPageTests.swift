import LoopbackBroker
import MQTT
import TestSupport
import Testing

/// The page of Examples/Browser in Chromium, with the loopback broker.
@Suite(.serialized, .requiresBrowser, .requires(program: "wasm-ld"))
struct WebAssemblyPageTests {
    @Test func `A page receives, publishes with QoS 1, and keeps what it publishes without a connection`() async throws
    {
        let files = try await EmbeddedProgram.page()
        var options = LoopbackBrokerOptions()
        // The page is a file.
        options.allowedOrigins = ["null"]
        let broker = try await LoopbackBroker.start(options)
        let client = MQTTClient(try #require(broker.urls.mqtt), clientID: "reader")
        try await client.connect()
        var messages = try await client.subscribe(to: "page/chat", qos: .atLeastOnce).makeAsyncIterator()
        let browser = try await Browser.start()
        let tab = try await browser.open("file://\(files)/page.html#\(try #require(broker.urls.ws))")
        func shows(_ id: String, _ text: String) async throws {
            let expression = "document.getElementById('\(id)').textContent"
            var last = ""
            _ = try await eventually {
                last = try await tab.evaluate(expression)
                return last.contains(text)
            }
            #expect(last.contains(text), "\(id) is not \(text); \(tab.problems)")
        }

        try await shows("state", "connected")
        // Its own message comes back when it is subscribed.
        try await tab.evaluate("document.querySelector('button').click()")
        try await shows("acknowledged", "1")
        #expect(try await messages.next()?.text == "Hello")
        try await shows("messages", "page/chat: Hello")
        try await client.publish("21.5 °C", to: "page/temperature", qos: .atLeastOnce)
        try await shows("messages", "page/temperature: 21.5 °C")

        // Its PUBLISH does not leave any more, and is sent again on the next connection.
        try await tab.evaluate("(socket.close(), publish('page/chat', 'later'))")
        #expect(try await messages.next()?.text == "later")
        try await shows("acknowledged", "2")
        await broker.dropAllConnections()
        try await shows("state", "connected")
        try await tab.evaluate("publish('page/chat', 'again')")
        try await shows("acknowledged", "3")
        try await shows("messages", "page/chat: again")
        #expect(tab.problems == [])
        await browser.close()
        await client.disconnect()
        await broker.stop()
    }

    @Test func `Two tabs are two clients, which do not take each other over, and a reload is another`() async throws {
        let files = try await EmbeddedProgram.page()
        var options = LoopbackBrokerOptions()
        // The page is a file.
        options.allowedOrigins = ["null"]
        let broker = try await LoopbackBroker.start(options)
        let browser = try await Browser.start()
        let address = "file://\(files)/page.html#\(try #require(broker.urls.ws))"
        let isConnected = "document.getElementById('state')?.textContent === 'connected'"
        let first = try await browser.open(address)
        try await first.wait(until: isConnected)
        let second = try await browser.open(address)
        try await second.wait(until: isConnected)
        try await first.wait(until: isConnected)
        let clients = Set(broker.clients)
        #expect(clients.count == 2, "\(clients)")
        // A page that is loaded again has another engine, without the session of the one before.
        try await first.evaluate("location.reload()")
        #expect(await eventually { broker.clients.contains { !clients.contains($0) } })
        try await first.wait(until: isConnected)
        // What cannot be published is said at the field.
        let isInvalid = "(f.topic.value = 'a/#', f.querySelector('button').click(), !f.topic.validity.valid)"
        try await first.wait(until: "(f => \(isInvalid))(document.querySelector('form'))")
        try await first.evaluate("location.hash = '#not a URL', location.reload()")
        try await first.wait(until: "document.getElementById('state')?.textContent.startsWith('cannot connect')")
        await browser.close()
        await broker.stop()
    }
}

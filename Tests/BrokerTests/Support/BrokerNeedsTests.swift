import TestSupport
import Testing

/// When a broker counts as installed. Its tests are disabled otherwise.
@Suite struct BrokerNeedsTests {
    @Test(arguments: Broker.allCases)
    func `a broker without one of the things that its tests use is not installed, and the reason names it`(
        broker: Broker
    ) {
        #expect(broker.missing { _ in true } == nil)
        for need in broker.needs {
            let reason = broker.missing { $0 != need }
            #expect(reason?.contains("without \(need) (apt-get install") == true, "\(reason ?? "nothing is missing")")
        }
    }

    @Test func `the programs that start it and make its passwords and key stores are among them`() {
        #expect(Broker.mosquitto.needs.contains("mosquitto_passwd"))
        #expect(Broker.rabbitMQ.needs.contains("epmd"))
        #expect(Broker.activeMQ.needs.contains("keytool"))
        // Tests of STOMP alone run without it.
        #expect(Set(Broker.activeMQWithMQTT.needs).subtracting(Broker.activeMQ.needs).count == 1)
        #expect(!Broker.allCases.flatMap(\.needs).contains("openssl"))
    }
}

import ClientTestSupport
import LoopbackBroker
import MQTT
import MQTTCore
import MessagingShell
import TestSupport
import Testing
import Transport

extension OptionTableTests {
    /// Options of how a connection comes about.
    static let connectingRows: [OptionRow] = [
        OptionRow(
            "fallbackVersions",
            shownBy: ConnectingTests
                .`falls back to the versions that are allowed, and stays with what the server takes`),
        OptionRow("credentialsProvider", shownBy: ReconnectTests.`credentials are asked for before every attempt`),
        OptionRow("connectProvider", shownBy: ReconnectTests.`each CONNECT may be changed`),
        OptionRow(
            "authentication",
            shownBy: ConnectingTests.`authenticates in steps, and renews it, also when the server asks`),
        OptionRow(
            "authentication.respond",
            shownBy: ConnectingTests.`an authentication that fails on this side ends the attempt for good`),
        OptionRow(
            "authentication.verify",
            shownBy: ConnectingTests.`the server's last data are verified before the app trusts it`),
        OptionRow("followsRedirects", shownBy: ConnectingTests.`goes where the server sends it, if that is allowed`),
    ]

    /// Options of which server is reached, and by which way.
    static let serverRows: [OptionRow] = OptionRow.serverRows(
        scheme: "mqtt", MQTTConfiguration(), quality: .background, port: { $0.ports.mqtt },
        failedServer: { (event: MQTTEvent) in if case .attemptFailed(let server, _) = event { server } else { nil } },
        makeClient: { (urls, configuration, network, clock) -> MQTTClient in
            if let clock { return MQTTClient(urls, configuration: configuration, loop: clock.loop, clock: clock) }
            guard let network else { return MQTTClient(urls, configuration: configuration) }
            return MQTTClient(
                urls, configuration: configuration, loop: .shared, override: ClientChecks.noNetwork, network: network)
        })
}

extension MQTTConfiguration: ServerOptions {}

import TestSupport
import Testing

@testable import MessagingDeviceSupport

@Suite(.turns)
struct BrokerAddressTests {
    @Test(arguments: [
        ("stomp://localhost", "stomp://localhost"), ("STOMPS://h:61614", "STOMPS://h:61614"),
        ("ws://user@h:1/path?q#f", "ws://h:1/path?q#f"), ("wss://u:p:q@[::1]:9/stomp", "wss://[::1]:9/stomp"),
        ("unix:/run/broker.sock", "unix:/run/broker.sock"), ("stomp://a%3Ab:c@h", "stomp://h"),
        ("http://u:p@h:15674/ws", "http://h:15674/ws"), ("HTTPS://h/ws", "HTTPS://h/ws"),
    ])
    func keepsTheURLWithoutUserInformation(text: String, url: String) throws {
        #expect(try BrokerAddress(text, for: .locations).url == url)
    }

    @Test func decodesUserInformation() throws {
        let address = try BrokerAddress("mqtts://a%3Ab:c%20d:e@h", for: .motions)
        #expect(address.user == "a:b")
        #expect(address.password == "c d:e")
        #expect(address.isEncrypted)
        #expect(try BrokerAddress("mqtt://name@h", for: .motions).password == nil)
    }

    @Test(arguments: [
        "localhost", "localhost:61613", "mqtt://h", "ftp://h", "stomp:h", "stomp://", "stomp://:61613",
        "stomp://h:0", "stomp://h:65536", "stomp://h:x", "stomp://::1", "stomp://[::1", "stomp://[]", "stomp://[::1]x",
        "stomp://h/path",
        "stomp://a b", "unix:", "unix://", "", "stomp://u:%zz@h", "stomp://%ff@h", "stomp://h:99999999999999999999",
        "ws://h/a b", "ws://h/\u{FC}", "wss://h/ws?name=a b",
    ])
    func refusesWhatIsNoBroker(text: String) {
        #expect(failure { try BrokerAddress(text, for: .locations) }?.status == .usage)
    }

    /// The library's own sentence, with the character and how it must be written.
    @Test func aPasswordThatIsNotPercentEncodedSaysSo() {
        let failure = failure { try BrokerAddress("stomp://me:p#ss@host", for: .locations) }
        #expect(failure?.message.contains("'#' in its user name or password must be written as %23") == true)
    }

    @Test func tokensInTheQueryAreNotPrinted() throws {
        #expect(try BrokerAddress("wss://h/ws?token=hush", for: .motions).name == "wss://h:443/ws?token=•••")
    }

    @Test(arguments: [
        "user:hush@host", "hush://user:hush@host", "stomp:user:hush@h", "stomp://u:hush@h:bad", "stomp://me:p#hush@h",
    ])
    func mistakesDoNotShowThePassword(text: String) {
        let failure = failure { try BrokerAddress(text, for: .locations) }
        // A scheme is shown, so only what follows it must be hidden.
        #expect(failure?.message.replacing("'hush", with: "'").contains("hush") == false)
    }
}

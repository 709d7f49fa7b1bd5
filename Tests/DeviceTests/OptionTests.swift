import Foundation
import MessagingShell
import TestSupport
import Testing

@testable import MessagingDeviceSupport

@Suite(.turns)
struct OptionTests {
    private func locations(_ arguments: String..., environment: [String: String] = [:]) throws -> LocationsOptions {
        try locations(arguments, environment: environment)
    }

    private func locations(_ arguments: [String], environment: [String: String] = [:]) throws -> LocationsOptions {
        guard case .run(let options) = try LocationsOptions.parse(arguments, environment: environment) else {
            throw DeviceFailure(.software, "text instead of options")
        }
        return options
    }

    private func motions(_ arguments: String...) throws -> MotionsOptions {
        guard case .run(let options) = try MotionsOptions.parse(arguments, environment: [:]) else {
            throw DeviceFailure(.software, "text instead of options")
        }
        return options
    }

    @Test func defaultsAreTheDocumentedOnes() throws {
        let options = try locations()
        #expect(options.common.broker == nil)
        #expect(options.common.deviceIDs.count == 1)
        #expect(options.common.deviceIDs[0].utf8.count == 36)
        #expect(options.common.speed == 1)
        #expect(options.common.servesPage && options.common.reconnects)
        #expect(!options.common.loops && !options.common.showsFrames && !options.common.isInsecure)
        #expect(options.track == nil && !options.usesRecordedTime)
        #expect(options.interval == .zero)
        #expect((options.heartBeatOut, options.heartBeatIn) == (60_000, 20_000))
        #expect(options.acknowledgement == .auto)
        let motion = try motions()
        #expect(motion.interval == .seconds(1))
        #expect(motion.keepAlive == 60 && motion.qos == 0 && !motion.keepsSession)
    }

    @Test func takesValuesAttachedAndSeparate() throws {
        let options = try locations(
            "--speed=2.5", "--interval", "0.25", "--heart-beat", "0,5000", "--ack=client-individual", "--country", "fr",
            "--expires", "600", "--priority=9", "--track", "-", "--recorded-time", "--device-id", "a=b")
        #expect(options.common.speed == 2.5)
        #expect(options.interval == .milliseconds(250))
        #expect((options.heartBeatOut, options.heartBeatIn) == (0, 5000))
        #expect(options.acknowledgement == .clientIndividual)
        #expect(options.country == "FR")
        #expect(options.expires == .seconds(600))
        #expect(options.priority == 9)
        #expect(options.track == "-")
        #expect(options.usesRecordedTime)
        #expect(options.common.deviceIDs == ["a=b"])
    }

    @Test func takesTheOptionsOfMotions() throws {
        let options = try motions(
            "--qos", "2", "--keep-session", "--keep-alive=0", "--interval", "0", "--motion", "x.csv")
        #expect(options.qos == 2 && options.keepsSession && options.keepAlive == 0)
        #expect(options.interval == .zero)
        #expect(options.motion == "x.csv")
    }

    @Test(arguments: [
        (["--spede", "2"], "unknown option '--spede'; did you mean --speed?"),
        (["--broke=x"], "unknown option '--broke'; did you mean --broker?"),
        (["--heartbeat", "1,1"], "unknown option '--heartbeat'; did you mean --heart-beat?"),
        (["--qos", "1"], "unknown option '--qos': it belongs to motions-device"),
        (["--zzzzzzzz"], "unknown option '--zzzzzzzz'; see locations-device --help"),
        (["track.gpx"], "unexpected argument 'track.gpx'; see locations-device --help"),
        (["-x"], "unexpected argument '-x'; see locations-device --help"),
        (["--"], "unexpected argument '--'; see locations-device --help"),
        (["--speed"], "--speed needs a value: --speed X"),
        (["--speed", "--loop"], "--speed needs a value: --speed X"),
        (["--speed="], "--speed needs a value that is not empty"),
        (["--loop=yes"], "--loop takes no value"),
        (["--loop", "--loop"], "--loop is given twice"),
        (["--speed", "1", "--speed=1"], "--speed is given twice"),
        (["--speed", "0"], "--speed wants a number from 0.001 to 1000000, not '0'"),
        (["--speed", "nan"], "--speed wants a number from 0.001 to 1000000, not 'nan'"),
        (["--speed", "-1"], "--speed wants a number from 0.001 to 1000000, not '-1'"),
        (["--speed", "1e999"], "--speed wants a number from 0.001 to 1000000, not '1e999'"),
        (["--fleet", "0"], "--fleet wants a whole number from 1 to 1000, not '0'"),
        (
            ["--fleet", "99999999999999999999"],
            "--fleet wants a whole number from 1 to 1000, not '99999999999999999999'"
        ),
        (["--priority", "10"], "--priority wants a whole number from 0 to 9, not '10'"),
        (["--heart-beat", "5"], "--heart-beat wants two numbers of milliseconds, as in 60000,20000, not '5'"),
        (["--heart-beat", "-1,0"], "--heart-beat wants two numbers of milliseconds, as in 60000,20000, not '-1,0'"),
        (["--ack", "client"], "--ack wants auto or client-individual, not 'client'"),
        (["--country", "FRA"], "--country wants two letters, not 'FRA'"),
        (["--cert", "a"], "--cert and --key belong together"),
        (["--insecure"], "--insecure needs a --broker with stomps:// or wss://"),
        (["--insecure", "--broker", "stomp://h"], "--insecure needs a --broker with stomps:// or wss://"),
        (["--track", "-", "--loop"], "--loop needs a recording in a file: standard input cannot start over"),
        (["--track", "-", "--fleet", "2"], "--fleet needs a recording in a file: standard input feeds one device"),
        (["--port", "0"], "--port wants a whole number from 1 to 65535, not '0'"),
        (["--port", "1", "--broker", "stomp://h"], "--port is for the embedded broker: leave out --broker"),
        (["--page-port", "1", "--broker", "stomp://h"], "--page-port is for the embedded broker: leave out --broker"),
        (["--page-port", "1", "--no-page"], "--page-port and --no-page exclude each other"),
        (["--open", "--no-page"], "--open and --no-page exclude each other"),
        (["--open", "--broker", "stomp://h"], "--open is for the embedded broker: leave out --broker"),
        (["--loop", "--once"], "--loop and --once exclude each other"),
        (["--name", "van"], "--name needs --fleet: a single device is named by --device-id"),
        (["--fleet", "2", "--name", "van", "--device-id", "x"], "--name and --device-id exclude each other"),
        (
            ["--broker", "stomp://h", "--broker", "mqtt://h"],
            "--broker does not speak 'mqtt://', which motions-device does; use one of stomp://, stomps://, ws://, wss://, unix:"
        ),
        (
            ["--broker", "localhost:61613"],
            "--broker needs a URL with a scheme, as in stomp://localhost; use one of stomp://, stomps://, ws://, wss://, unix:"
        ),
        (
            ["--broker", "stomp+ssl://broker.example"],
            "--broker: 'stomp+ssl://broker.example' is not a broker's URL: its scheme is missing or unknown; write stomps://broker.example"
        ),
        (
            ["--broker", "ftp://broker.example"],
            "--broker: 'ftp://broker.example' is not a broker's URL: the scheme 'ftp' is not one of stomp, stomps, ws, wss, unix"
        ),
        (["--password-file", "/dev/null"], "the password file /dev/null holds no line of text"),
    ])
    func refusesWithOneLine(arguments: [String], message: String) {
        let failure = failure { try locations(arguments) }
        #expect(failure?.message == message)
        #expect(failure?.status == (arguments.contains("/dev/null") ? .dataError : .usage))
    }

    @Test func aSpeedIsNotReadAsThePrefixOfACombiningMark() {
        // "=" and U+0338 are one Character; the split is at bytes.
        #expect(failure { try locations("--speed=\u{338}") }?.status == .usage)
        #expect(failure { try locations("--\u{1B}[31m") }?.message.contains("\u{1B}") == false)
    }

    @Test func missingFilesAreNoInput() {
        let arguments = ["--broker", "stomps://h", "--ca", "/nonexistent/ca.pem"]
        let failure = failure { try locations(arguments) }
        #expect(failure?.status == .noInput)
        #expect(failure?.message == "--ca: cannot read /nonexistent/ca.pem: No such file or directory")
    }

    @Test func deviceIDsOfAFleetAreDistinct() throws {
        #expect(try locations("--fleet", "3", "--device-id", "van").common.deviceIDs == ["van-1", "van-2", "van-3"])
        #expect(Set(try locations("--fleet", "50").common.deviceIDs).count == 50)
    }

    @Test func aFleetHasNamesOfItsOwn() throws {
        let vans = try locations("--fleet", "3").common
        #expect(vans.deviceIDs == ["van-1", "van-2", "van-3"])
        #expect(vans.isSpread)
        #expect(try motions("--fleet", "2").common.deviceIDs == ["phone-1", "phone-2"])
        // Two fleets at a broker that both use are two fleets.
        let (one, other) = (
            try locations("--fleet", "2", "--broker", "stomp://h").common.deviceIDs,
            try locations("--fleet", "2", "--broker", "stomp://h").common.deviceIDs
        )
        #expect(one[0].wholeMatch(of: /van-[0-9a-f]{4}-1/) != nil)
        #expect(one != other)
    }

    @Test func aFleetWithANameIsSpread() throws {
        let options = try locations("--fleet", "2", "--name", "van").common
        #expect(options.deviceIDs == ["van-1", "van-2"])
        #expect(options.isSpread)
        #expect(try locations("--fleet", "1", "--name", "van").common.deviceIDs == ["van-1"])
        #expect(try !locations("--fleet", "2", "--device-id", "van").common.isSpread)
        #expect(failure { try locations("--fleet", "2", "--name", "a b") }?.status == .usage)
    }

    @Test func severalBrokersKeepTheirOrderAndTheirCredentials() throws {
        let urls = ["--broker", "stomp://ann:a%401@one", "--broker=stomp://two", "--broker", "unix:/three"]
        let plain = try locations(urls, environment: [:]).common
        #expect(plain.brokers.map(\.url) == ["stomp://one", "stomp://two", "unix:/three"])
        #expect(plain.credentials == nil)
        #expect(plain.brokerURLs == ["stomp://ann:a%401@one", "stomp://two", "unix:/three"])
        let named = try locations(urls, environment: ["MESSAGING_USER": "eve", "MESSAGING_PASSWORD": "x/y"]).common
        #expect(named.brokerURLs == ["stomp://ann:a%401@one", "stomp://eve:x%2Fy@two", "unix:/three"])
        let one = try locations(urls + ["--user", "bob"], environment: ["MESSAGING_PASSWORD": "x"]).common
        #expect(one.brokerURLs == ["stomp://bob:a%401@one", "stomp://bob:x@two", "unix:/three"])
        let shared = try locations(
            "--broker", "stomp://one", "--broker", "stomp://two", environment: ["MESSAGING_USER": "eve"])
        #expect(shared.common.credentials == Credentials(userName: "eve"))
        #expect(shared.common.brokerURLs == ["stomp://one", "stomp://two"])
    }

    /// As with `--password-file <(command)`.
    @Test func aPasswordFileThatIsAPipeIsReadOnceForAllBrokers() throws {
        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data("secret\n".utf8))
        try pipe.fileHandleForWriting.close()
        let options = try locations(
            "--broker", "stomp://one", "--broker", "stomp://two", "--user", "ann", "--password-file",
            "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)")
        #expect(options.common.credentials == Credentials(userName: "ann", password: "secret"))
    }

    @Test func `a password has the blanks of its line, and a line that is too long is no password`() throws {
        func password(_ text: String) throws -> String? {
            try withFile(text) { try locations("--broker", "stomp://h", "--user", "ann", "--password-file", $0) }
                .common.login.password
        }
        #expect(try password(" \tsecret \r\n") == " \tsecret ")
        let problem = failure { try password(String(repeating: "x", count: 200_000)) }
        #expect(problem?.message.hasSuffix("holds no line of text") == true)
    }

    @Test func takesTheOptionsOfTheEmbeddedBroker() throws {
        let options = try locations("--port", "5000", "--page-port", "5001", "--open", "--once", "--virtual-host", "v")
        #expect(options.common.port == 5000 && options.common.pagePort == 5001)
        #expect(options.common.opensPage && options.common.runsOnce && options.common.hasPage)
        #expect(options.virtualHost == "v")
        #expect(try locations().virtualHost == "/")
        #expect(try locations("--port", "5000", "--no-page").common.port == 5000)
        #expect(try !locations("--broker", "stomp://h").common.hasPage)
    }

    @Test(arguments: ["a/b", "a+b", "a#", "a b", "a\u{0}", String(repeating: "x", count: 201)])
    func deviceIDsThatWouldBreakATopicAreRefused(id: String) {
        let failure = failure { try motions("--device-id", id) }
        #expect(failure?.status == .usage)
        #expect(
            failure?.message.hasPrefix(
                "--device-id must be at most 200 bytes, without spaces, control characters or any of / + # %; '")
                == true)
    }

    @Test(arguments: ["a/b", "a.b", "a*", "a>", "a b"])
    func deviceIDsThatThePageWouldNotShowAreRefused(id: String) {
        #expect(failure { try locations("--device-id", id) }?.status == .usage)
        #expect(failure { try locations("--fleet", "2", "--name", id) }?.status == .usage)
    }

    @Test func optionsBeatTheURLAndTheURLBeatsTheEnvironment() throws {
        let environment = ["MESSAGING_USER": "eve", "MESSAGING_PASSWORD": "env"]
        try withFile("from file\r\nsecond line\n") { path in
            let options = try locations(
                "--broker", "stomp://url:pa%40ss@host", "--user", "opt", "--password-file", path,
                environment: environment)
            #expect(options.common.login.user == "opt")
            #expect(options.common.login.password == "from file")
        }
        let url = try locations("--broker", "stomp://url:pa%40ss@host", environment: environment).common
        #expect(url.login.user == "url" && url.login.password == "pa@ss")
        #expect(url.broker?.url == "stomp://host")
        let plain = try locations("--broker", "stomp://host", environment: environment).common
        #expect(plain.login.user == "eve" && plain.login.password == "env")
        #expect(!"\(plain.login)".contains("env"))
        #expect(try locations(environment: ["MESSAGING_PASSWORD": "env"]).common.login.password == nil)
    }

    @Test func helpNamesEveryOptionAndEveryExitStatus() throws {
        for device in Device.allCases {
            let help = HelpText.text(for: device)
            for option in OptionDeclaration.all(of: device) {
                #expect(help.contains("\n  \(option.name) "))
            }
            for status in ExitStatus.allCases {
                #expect(help.contains("\n  \(status.rawValue) "))
            }
            #expect(help.split(separator: "\n").allSatisfy { $0.count <= 100 })
        }
        guard case .show(let text) = try MotionsOptions.parse(["--bad", "--help"], environment: [:]),
            case .show(let short) = try LocationsOptions.parse(["--bad", "-h"], environment: [:])
        else {
            Issue.record("no help")
            return
        }
        #expect(text.hasPrefix("Usage: motions-device [options]"))
        #expect(short.hasPrefix("Usage: locations-device [options]"))
    }

    @Test func noOptionIsDeclaredTwiceForOneProgram() {
        for device in Device.allCases {
            let names = OptionDeclaration.all(of: device).map(\.name)
            #expect(Set(names).count == names.count)
        }
    }
}

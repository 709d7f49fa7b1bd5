import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Transport

/// What the options demand of a server beside a valid certificate, with OpenSSL on both sides.
@Suite(.turns)
struct TLSDemandTests {
    private let certificates = Certificates()
    static let versions: [TLSTestServer.Version?] = [nil, .tls12]

    private func connect(_ server: TLSTestServer, _ options: TLSOptions) async throws(TransportError) {
        let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
    }

    private func refusal(_ server: TLSTestServer, _ options: TLSOptions) async throws -> TransportError {
        do throws(TransportError) {
            try await connect(server, options)
        } catch {
            return error
        }
        throw TimeoutError("the handshake succeeded")
    }

    // MARK: Pinned keys

    @Test(arguments: versions) func `a pinned key is demanded, of the server or of its authority`(
        version: TLSTestServer.Version?
    ) async throws {
        let server = try TLSTestServer.start(certificates.server) { $0.version = version }
        let own = try publicKeyPin(certificates.server.certificate)
        let authority = try publicKeyPin(certificates.authority.certificate)
        let other = try publicKeyPin(certificates.client.certificate)
        var options = TLSOptions.trusting(certificates)
        for pins in [[own], [authority], [other, own], ["sha256/" + own], ["sha256//" + own]] {
            options.pinnedKeys = pins
            try await connect(server, options)
        }
        options.pinnedKeys = [other]
        let error = try await refusal(server, options)
        #expect(error.code == .certificatePinMismatch)
        #expect(error.isPermanent)
        #expect(error.message.contains("sha256/\(own)"), "\(error)")
    }

    @Test func `a pin never replaces the verification`() async throws {
        var options = TLSOptions.trusting(certificates)
        options.pinnedKeys = [try publicKeyPin(certificates.otherServer.certificate)]
        let error = try await refusal(try TLSTestServer.start(certificates.otherServer), options)
        #expect(error.code == .certificateUntrusted)
        options.pinnedKeys = [try publicKeyPin(certificates.wrongHost.certificate)]
        let named = try await refusal(try TLSTestServer.start(certificates.wrongHost), options)
        #expect(named.code == .certificateNameMismatch)
    }

    @Test func `a certificate that the server sends without using it satisfies no pin`() async throws {
        let scratch = try ScratchDirectory("chain")
        let pair = certificates.otherServer
        let chain = try [pair.certificate, certificates.authority.certificate].map {
            try String(contentsOfFile: $0, encoding: .utf8)
        }
        let server = try TLSTestServer.start(
            Certificates.Pair(certificate: try scratch.write(chain.joined(), to: "chain.pem"), key: pair.key))
        var options = TLSOptions()
        options.pinnedKeys = [try publicKeyPin(certificates.authority.certificate)]
        options.trust = .authorities([.file(certificates.otherAuthority.certificate)])
        #expect(try await refusal(server, options).code == .certificatePinMismatch)
        options.verification = .unsafeAcceptAnyCertificate
        #expect(try await refusal(server, options).code == .certificatePinMismatch)
    }

    @Test func `without verification the server's own key is still demanded`() async throws {
        let server = try TLSTestServer.start(certificates.selfSigned)
        var options = TLSOptions()
        options.verification = .unsafeAcceptAnyCertificate
        options.pinnedKeys = [try publicKeyPin(certificates.selfSigned.certificate)]
        try await connect(server, options)
        options.pinnedKeys = [try publicKeyPin(certificates.server.certificate)]
        #expect(try await refusal(server, options).code == .certificatePinMismatch)
    }

    @Test(arguments: ["", "sha256/", "abc", "sha1/AAAA", String(repeating: "?", count: 44)])
    func `what is not a pin is named before connecting`(pin: String) throws {
        var options = TLSOptions()
        options.pinnedKeys = [pin]
        let error = #expect(throws: TransportError.self) { try options.check() }
        #expect(error?.code == .tlsConfiguration)
        #expect(error?.message.contains("pinnedKeys") == true)
    }

    // MARK: The additional check

    @Test(arguments: versions) func `the additional check gets the verified chain and the name, and may refuse`(
        version: TLSTestServer.Version?
    ) async throws {
        let server = try TLSTestServer.start(certificates.server) { $0.version = version }
        let seen = Mutex<[(certificates: [[UInt8]], name: String)]>([])
        var options = TLSOptions.trusting(certificates)
        options.additionalCheck = { certificates, name in seen.withLock { $0.append((certificates, name)) } }
        try await connect(server, options)
        let call = try #require(seen.withLock { $0.count == 1 ? $0[0] : nil })
        #expect(call.name == "localhost")
        #expect(
            call.certificates == [
                try PEMSource.file(certificates.server.certificate).certificates("certificate")[0],
                try PEMSource.file(certificates.authority.certificate).certificates("certificate")[0],
            ])
        options.additionalCheck = { _, _ in throw TransportError(.certificateRefused, "Serial number 7 is blocked.") }
        let error = try await refusal(server, options)
        #expect(error.code == .certificateRefused)
        #expect(error.message.contains("Serial number 7 is blocked"))
        #expect(!error.isPermanent)
    }

    @Test func `the additional check accepts nothing that the verification refuses`() async throws {
        let isCalled = Atomic(false)
        var options = TLSOptions.trusting(certificates)
        options.additionalCheck = { _, _ in isCalled.store(true, ordering: .releasing) }
        let error = try await refusal(try TLSTestServer.start(certificates.otherServer), options)
        #expect(error.code == .certificateUntrusted)
        let wasCalled = isCalled.load(ordering: .acquiring)
        #expect(!wasCalled)
    }

    // MARK: Sessions

    /// Otherwise the second connection would show no certificate, and nothing would be checked.
    @Test func `no session is continued where each connection is checked`() throws {
        let identity = TLSIdentity(
            certificates: .file(certificates.server.certificate), key: .file(certificates.server.key))
        let server = TLSContexts(server: TLSServerOptions(identity: identity))
        let own = try publicKeyPin(certificates.server.certificate)
        let calls = Atomic(0)
        let demands: [(inout TLSOptions) -> Void] = [
            { _ in }, { $0.pinnedKeys = [own] },
            { $0.additionalCheck = { _, _ in calls.add(1, ordering: .relaxed) } },
        ]
        for (index, demand) in demands.enumerated() {
            var options = TLSOptions.trusting(certificates)
            demand(&options)
            let contexts = TLSContexts(client: options)
            for attempt in 0..<3 {
                let client = try TLSLayer(client: contexts, host: "localhost", port: 1)
                let pair = try LayerPair(client: client, server: TLSLayer(server: server))
                try pair.exchange()
                #expect(client.isOpen)
                #expect(client.wasResumed == (index == 0 && attempt > 0), "\(index)")
            }
        }
        let count = calls.load(ordering: .relaxed)
        #expect(count == 3)
    }

    // MARK: Pre-shared keys

    private let key: [UInt8] = Array(1...32)

    private func keyServer(_ version: TLSTestServer.Version?) throws -> TLSTestServer {
        try TLSTestServer.start(certificates.server) {
            $0.version = version
            $0.preSharedKey = ("meter-7", key)
        }
    }

    @Test(arguments: versions) func `a pre-shared key stands for the certificates of both sides`(
        version: TLSTestServer.Version?
    ) async throws {
        let server = try keyServer(version)
        var options = TLSOptions()
        options.preSharedKey = TLSPreSharedKey(identity: "meter-7", key: key)
        let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
        #expect(connection.layer.version == (version == nil ? "TLSv1.3" : "TLSv1.2"))
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
        let digits = key.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        options.preSharedKey = TLSPreSharedKey(identity: "meter-7", hexadecimal: digits)
        try await connect(server, options)
        for wrong in [
            TLSPreSharedKey(identity: "meter-8", key: key), TLSPreSharedKey(identity: "meter-7", key: key.reversed()),
        ] {
            options.preSharedKey = wrong
            let error = try await refusal(server, options)
            #expect(error.code == .preSharedKeyRefused, "\(error)")
            #expect(error.message.contains("'\(wrong.identity)'"))
            #expect(error.isPermanent)
        }
        options.preSharedKey = nil
        #expect(try await refusal(server, options).code == .tlsFailed)
    }

    @Test(arguments: versions) func `a server with a certificate cannot replace the pre-shared key`(
        version: TLSTestServer.Version?
    ) async throws {
        let server = try TLSTestServer.start(certificates.server) { $0.version = version }
        var options = TLSOptions.trusting(certificates)
        try await connect(server, options)
        options.preSharedKey = TLSPreSharedKey(identity: "meter-7", key: key)
        #expect(try await refusal(server, options).code == .preSharedKeyRefused)
        options.verification = .unsafeAcceptAnyCertificate
        #expect(try await refusal(server, options).code == .preSharedKeyRefused)
    }

    @Test func `a pre-shared key is never shown, and has to be one`() {
        let key = TLSPreSharedKey(identity: "meter-7", key: [0xAB, 0xCD])
        var options = TLSOptions()
        options.preSharedKey = key
        var text = String(reflecting: options)
        dump(options, to: &text)
        #expect(!text.contains("171") && !text.contains("ABCD") && !text.contains("205"))
        #expect(
            TLSPreSharedKey(identity: "a", hexadecimal: "abCD") == TLSPreSharedKey(identity: "a", key: [0xAB, 0xCD]))
        for digits in ["abc", "ag", "é0"] { #expect(TLSPreSharedKey(identity: "a", hexadecimal: digits) == nil) }
    }

    // MARK: What does not fit

    @Test func `demands that cannot be met are named before connecting`() {
        let preSharedKey = TLSPreSharedKey(identity: "meter-7", key: key)
        let mistakes: [(String, (inout TLSOptions) -> Void)] = [
            (
                "revocation",
                {
                    $0.revocation = .required
                    $0.verification = .unsafeAcceptAnyCertificate
                }
            ),
            ("additionalCheck with a list", { $0.revocation = .required }),
            ("identity of 1 to 128", { $0.preSharedKey = TLSPreSharedKey(identity: "", key: key) }),
            ("key of 1 to 64", { $0.preSharedKey = TLSPreSharedKey(identity: "a", key: []) }),
            (
                "neither side has a certificate",
                {
                    $0.preSharedKey = preSharedKey
                    $0.pinnedKeys = [String(repeating: "A", count: 43) + "="]
                }
            ),
            (
                "neither side has a certificate",
                {
                    $0.preSharedKey = preSharedKey
                    $0.additionalCheck = { _, _ in }
                }
            ),
            ("keyLogFile", { $0.keyLogFile = "/nowhere/at/all" }),
        ]
        for (words, change) in mistakes {
            var options = TLSOptions()
            change(&options)
            let error = #expect(throws: TransportError.self) { try options.check() }
            #expect(error?.message.contains(words) == true, "\(String(describing: error))")
            #expect(error?.isPermanent == true)
        }
    }

    @Test func `what Network framework cannot do is named with what to do instead`() {
        let changes: [(inout TLSOptions) -> Void] = [
            { $0.keyLogFile = "/tmp/keys" },
            {
                $0.preSharedKey = TLSPreSharedKey(identity: "meter-7", key: key)
                $0.minimumVersion = .tls13
            },
        ]
        for change in changes {
            var options = TLSOptions()
            change(&options)
            let error = #expect(throws: TransportError.self) { try options.checkDemands(on: .networkFramework) }
            #expect(error?.code == .unsupported)
        }
        var options = TLSOptions()
        options.preSharedKey = TLSPreSharedKey(identity: "meter-7", key: key)
        #expect(throws: Never.self) { try options.checkDemands(on: .networkFramework) }
    }

    // MARK: The key log

    #if DEBUG
        @Test(arguments: versions) func `a key log has the secrets of each connection`(
            version: TLSTestServer.Version?
        ) async throws {
            let scratch = try ScratchDirectory("key-log")
            let server = try TLSTestServer.start(certificates.server) { $0.version = version }
            var options = TLSOptions.trusting(certificates)
            let path = scratch.file("keys.log")
            options.keyLogFile = path
            for count in 1...2 {
                try await connect(server, options)
                let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
                let labels = lines.compactMap {
                    $0.split(separator: " ").count == 3 ? $0.split(separator: " ")[0] : nil
                }
                #expect(labels.count == lines.count)
                let wanted = version == nil ? "CLIENT_TRAFFIC_SECRET_0" : "CLIENT_RANDOM"
                #expect(labels.count { $0 == wanted } == count)
            }
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
    #else
        @Test func `a release build writes no key log`() {
            var options = TLSOptions()
            options.keyLogFile = "/tmp/keys.log"
            let error = #expect(throws: TransportError.self) { try options.check() }
            #expect(error?.code == .unsupported)
            #expect(error?.message.contains("debug builds") == true)
        }
    #endif
}

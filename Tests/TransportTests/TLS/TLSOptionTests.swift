import Foundation
import TestSupport
import Testing

@testable import Transport

/// What the options change, with OpenSSL on both sides.
@Suite(.turns)
struct TLSOptionTests {
    private func connect(_ server: TLSTestServer, _ options: TLSOptions) async throws(TransportError) {
        let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
    }

    @Test func `a check reads the files of the options without a connection`() async throws {
        let certificates = Certificates()
        var options = TLSOptions()
        try options.check()
        options.trust = .authorities([.file(certificates.authority.certificate)])
        options.identity = TLSIdentity(
            certificates: .file(certificates.client.certificate), key: .file(certificates.client.key))
        try options.check()
        options.identity = TLSIdentity(
            certificates: .file(certificates.client.certificate), key: .file(certificates.server.key))
        #expect { try options.check() } throws: { ($0 as? TransportError)?.code == .tlsConfiguration }
        options.identity = nil
        options.trust = .authorities([.file("/nowhere/authority.pem")])
        #expect { try options.check() } throws: { error in
            let error = error as? TransportError
            return error?.code == .tlsConfiguration && error?.message.contains("No such file") == true
        }
    }

    @Test func `files that cannot be read anew leave what they held before`() async throws {
        let certificates = Certificates()
        let folder = try ScratchDirectory("tls")
        let file = folder.file("authority.pem")
        // Of OpenSSL, which the connections below use, also where the system has a TLS of its own.
        let options = try TLSOptions.trustingCopy(of: certificates, at: file)
        let server = try TLSTestServer.start(certificates.server)
        let contexts = TLSContexts(client: options)
        func connect() async throws(TransportError) {
            let stream = try await connectTLS(port: server.port, contexts: contexts).stream
            EventLoop.shared.execute { stream.close() }
        }
        try await connect()
        let refused = TransportError(.connectionRefused, "Nobody listens.")
        #expect(contexts.reload(after: refused) == refused)
        // Missing for a moment, then half written.
        for content in [String?.none, "-----BEGIN CERTIFICATE-----\nMIIB"] {
            try? FileManager.default.removeItem(atPath: file)
            if let content { try folder.write(content, to: "authority.pem") }
            #expect(!contexts.isPrepared)
            try await contexts.prepare()
            try await connect()
            let error = contexts.reload(after: refused)
            #expect(error.code == .connectionRefused)
            #expect(error.message.hasPrefix("Nobody listens. ") && error.message.contains(file))
        }
        // Readable again, and with another content: that counts.
        try FileManager.default.removeItem(atPath: file)
        try FileManager.default.copyItem(atPath: certificates.otherAuthority.certificate, toPath: file)
        try await contexts.prepare()
        await #expect { try await connect() } throws: { ($0 as? TransportError)?.code == .certificateUntrusted }
        #expect(contexts.reload(after: refused) == refused)
    }

    @Test func `clients with equal options and files share what was made of them`() async throws {
        let certificates = Certificates()
        let folder = try ScratchDirectory("tls")
        let file = folder.file("authority.pem")
        let options = try TLSOptions.trustingCopy(of: certificates, at: file)
        /// What OpenSSL has made of the options, for a connection.
        func context(_ contexts: TLSContexts) async throws -> ObjectIdentifier {
            try await contexts.prepare()
            return try #require(TLSLayer(client: contexts, host: "localhost", port: 1).contextID)
        }
        let (one, two) = (TLSContexts(client: options), TLSContexts(client: options))
        let first = try await context(one)
        #expect(try await context(two) == first)
        // After a failure as well, unless there is something else to read.
        _ = two.reload(after: TransportError(.clientCertificateRefused, "No."))
        #expect(try await context(two) == first)
        var others = options
        others.identity = TLSIdentity(
            certificates: .file(certificates.client.certificate), key: .file(certificates.client.key))
        let different = TLSContexts(client: others)
        #expect(try await context(different) != first)
        // Who comes later reads what is in the file then, and the others with their next connection.
        try FileManager.default.removeItem(atPath: file)
        try FileManager.default.copyItem(atPath: certificates.otherAuthority.certificate, toPath: file)
        let three = TLSContexts(client: options)
        let second = try await context(three)
        #expect(second != first)
        #expect(try await context(one) == second)
        #expect(try await context(two) == second)
    }

    @Test func `the system's authorities are read again when a server is not trusted, once for all clients`()
        async throws
    {
        var options = TLSOptions()
        options.implementation = .openSSL
        // Nobody else's in this process.
        options.serverName = "authorities.example"
        func context(_ contexts: TLSContexts) async throws -> ObjectIdentifier {
            try await contexts.prepare()
            return try #require(TLSLayer(client: contexts, host: "localhost", port: 1).contextID)
        }
        let (one, two) = (TLSContexts(client: options), TLSContexts(client: options))
        let first = try await context(one)
        #expect(try await context(two) == first)
        for code in [TransportError.Code.connectionRefused, .unknownHost, .timedOut, .clientCertificateRefused] {
            _ = one.reload(after: TransportError(code, "No."))
            #expect(one.isPrepared)
            #expect(try await context(one) == first)
        }
        for contexts in [one, two] { _ = contexts.reload(after: TransportError(.certificateUntrusted, "No.")) }
        let second = try await context(one)
        #expect(second != first)
        #expect(try await context(two) == second)
    }

    @Test func `a file that no descriptor is left for is no mistake in the options`() {
        let source = PEMSource.file("authority.pem")
        for (code, advice) in [
            (EMFILE, "Raise the limit (ulimit -n)."), (ENFILE, "fs.file-max"), (ENOMEM, "Free some memory"),
        ] {
            let error = source.unreadable("trusted authorities", code)
            #expect(error.code == .systemLimit && error.errno == code)
            #expect(error.message.contains(advice), "\(error)")
            #expect(error.message.contains("ulimit") == (code == EMFILE), "\(error)")
        }
        #expect(source.unreadable("trusted authorities", EACCES).code == .tlsConfiguration)
    }

    #if os(Linux)
        /// In a process of its own, whose threads are nobody else's.
        @Test func `clients with equal options that are prepared together have the files read once`() async {
            await #expect(processExitsWith: .success) {
                let certificates = Certificates()
                let folder = try ScratchDirectory("tls")
                let file = folder.file("authority.pem")
                // Opening it waits for a writer.
                #expect(mkfifo(file, 0o600) == 0)
                var options = TLSOptions()
                options.trust = .authorities([.file(file)])
                let clients = (0..<64).map { _ in TLSContexts(client: options) }
                let waiting = Tally()
                try await withThrowingTaskGroup { group in
                    for client in clients {
                        group.addTask {
                            waiting.add(1)
                            try await client.prepare()
                        }
                    }
                    #expect(await eventually { waiting.value == clients.count })
                    var writer: Int32 = -1
                    #expect(
                        await eventually {
                            writer = open(file, O_WRONLY | O_NONBLOCK)
                            return writer >= 0
                        })
                    #expect(ThreadCount.named("messaging-files") == 1)
                    // What is read next is a file.
                    try FileManager.default.removeItem(atPath: file)
                    let content = Array(try Data(contentsOf: URL(fileURLWithPath: certificates.authority.certificate)))
                    try folder.write(String(decoding: content, as: UTF8.self), to: "authority.pem")
                    #expect(write(writer, content, content.count) == content.count)
                    close(writer)
                    for try await _ in group {}
                }
                let made = try clients.map { try TLSLayer(client: $0, host: "localhost", port: 1).contextID }
                #expect(Set(made).count == 1)
            }
        }

        /// In a process of its own, which can start no thread afterwards.
        @Test func `what is known of TLS files serves where no thread can be started to read them`() async {
            await #expect(processExitsWith: .success) {
                let certificates = Certificates()
                let folder = try ScratchDirectory("tls")
                let options = try TLSOptions.trustingCopy(of: certificates, at: folder.file("authority.pem"))
                let contexts = TLSContexts(client: options)
                try await contexts.prepare()
                let refused = TransportError(.connectionRefused, "Nobody listens.")
                #expect(contexts.reload(after: refused) == refused)
                // Another user could not remove it.
                try FileManager.default.removeItem(atPath: folder.path)
                // The limit is not for root.
                if getuid() == 0 { #expect(setuid(65_534) == 0) }
                var limit = rlimit()
                setrlimit(__rlimit_resource_t(__RLIMIT_NPROC.rawValue), &limit)
                let other = TLSContexts(client: .trusting(certificates))
                await #expect { try await other.prepare() } throws: {
                    let error = $0 as? TransportError
                    return error?.code == .systemLimit && error?.message.contains("ulimit -u") == true
                }
                try await contexts.prepare()
                let error = contexts.reload(after: refused)
                #expect(error.code == .connectionRefused && error.message.contains("ulimit -u"), "\(error)")
            }
        }

        /// In a process of its own, where nothing has loaded OpenSSL, and nobody else needs descriptors.
        @Test func `a moment without descriptors is neither a lack of OpenSSL nor a mistake in the options`() async {
            await #expect(processExitsWith: .success) {
                /// Makes what a connection needs, without free descriptors and then with some.
                func check(_ purpose: Comment, _ options: TLSOptions) throws {
                    let contexts = TLSContexts(client: options)
                    var limit = rlimit()
                    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                    let usual = limit.rlim_cur
                    limit.rlim_cur = 0
                    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                    let error = #expect(throws: TransportError.self, purpose) {
                        try TLSLayer(client: contexts, host: "localhost", port: 1)
                    }
                    limit.rlim_cur = usual
                    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                    #expect(error?.code == .systemLimit && error?.errno == EMFILE, "\(String(describing: error))")
                    #expect(error?.message.hasSuffix("Raise the limit (ulimit -n).") == true)
                    _ = try TLSLayer(client: contexts, host: "localhost", port: 1)
                }
                let certificates = Certificates()
                var options = TLSOptions()
                try check("the library", options)
                let folder = try ScratchDirectory("tls")
                options.keyLogFile = folder.file("keys.log")
                try check("the key log", options)
                options.keyLogFile = nil
                options.identity = .stored(
                    key: "file:" + certificates.client.key,
                    certificates: .bytes(
                        Array(try Data(contentsOf: URL(fileURLWithPath: certificates.client.certificate)))))
                try check("a stored key", options)
            }
        }
    #endif

    @Test func `authorities may be PEM or DER, in files and in memory`() async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.server)
        for source in try certificates.authoritySources() {
            var options = TLSOptions()
            options.trust = .authorities([source])
            try await connect(server, options)
        }
        var options = TLSOptions()
        options.trust = .authorities([.bytes([0x30, 0x03, 1, 2, 3])])
        await #expect { try await connect(server, options) } throws: {
            ($0 as? TransportError)?.message.contains("damaged certificate") == true
        }
    }

    @Test func `the name is not checked where the options say so, and the chain still is`() async throws {
        let certificates = Certificates()
        var options = TLSOptions.trusting(certificates)
        options.verification = .unsafeAcceptAnyName
        try await connect(try TLSTestServer.start(certificates.wrongHost), options)
        let other = try TLSTestServer.start(certificates.otherServer)
        await #expect { try await connect(other, options) } throws: {
            ($0 as? TransportError)?.code == .certificateUntrusted
        }
    }

    @Test func `a certificate without subjectAltName is refused with a message that names it`() async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.nameless)
        await #expect { try await connect(server, .trusting(certificates)) } throws: {
            let error = $0 as? TransportError
            return error?.code == .certificateNameMismatch
                && error?.message.contains("only subjectAltName counts") == true
        }
    }

    @Test func `a server below the minimum version is refused`() async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.server) { $0.version = .tls12 }
        var options = TLSOptions.trusting(certificates)
        try await connect(server, options)
        options.minimumVersion = .tls13
        await #expect { try await connect(server, options) } throws: {
            ($0 as? TransportError)?.code == .tlsVersion
        }
    }

    @Test func `a client certificate comes from PKCS 12`() async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.server) {
            $0.clientAuthority = certificates.authority.certificate
            $0.version = .tls12
        }
        var options = TLSOptions.trusting(certificates)
        let container = PEMSource.file(certificates.client.container)
        for container in [container, .file(certificates.clientContainerWithAES)] {
            options.identity = .pkcs12(container, passphrase: certificates.passphrase)
            try await connect(server, options)
        }
        for (identity, reason) in [
            (TLSIdentity.pkcs12(container, passphrase: "guess"), "passphrase is wrong"),
            (.pkcs12(container), "Set the identity's passphrase"),
            (.pkcs12(.file(certificates.client.key)), "is not a PKCS #12 file"),
        ] {
            options.identity = identity
            await #expect { try await connect(server, options) } throws: {
                let error = $0 as? TransportError
                return error?.code == .tlsConfiguration && error?.message.contains(reason) == true
            }
        }
    }

    @Test func `a key under a cipher that OpenSSL lacks is not taken for a wrong passphrase`() async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.server)
        // An Ed25519 key of this test's own under RC2, which OpenSSL 3 has in its legacy provider alone.
        let key = Array(
            """
            -----BEGIN ENCRYPTED PRIVATE KEY-----
            MFgwHAYKKoZIhvcNAQwBBjAOBAgB17v03BIIvQICCAAEOD2oX9qW2Wppejz+r2Ch
            MNePBJiqVz7JmlLCaXSWlwRa03dMfNcImAYpTtMKbZBAZ1MvQ5+e92kA
            -----END ENCRYPTED PRIVATE KEY-----
            """.utf8)
        var options = TLSOptions.trusting(certificates)
        options.identity = TLSIdentity(
            certificates: .file(certificates.client.certificate), key: .bytes(key), passphrase: "x")
        await #expect { try await connect(server, options) } throws: {
            let error = $0 as? TransportError
            return error?.code == .tlsConfiguration && error?.message.contains("a cipher that the TLS library") == true
                && error?.message.contains("passphrase") == false
        }
    }

    @Test func `a program that is fully static learns that it cannot load OpenSSL`() {
        let error = OpenSSL.unavailable("Dynamic loading not supported")
        #expect(error.code == .tlsUnavailable)
        #expect(error.message.contains("fully static program cannot load"))
        #expect(!OpenSSL.unavailable("libssl.so.3: cannot open shared object file").message.contains("static"))
    }

    #if !canImport(Network)
        @Test func `a Linux program contains nothing that is written for Apple's systems`() async throws {
            // The program of these tests, which Transport is linked into.
            let program = CommandLine.arguments[0]
            for type in ["SocketStream", "NetworkStream", "NetworkTLS", "NetworkConnecting", "SystemIdentity"] {
                let name = "9Transport\(type.utf8.count)\(type)"
                let search = try await Tool.run("grep", ["-q", "-a", "-F", name, program])
                #expect(search.status == .exited(type == "SocketStream" ? 0 : 1), "\(name)")
            }
        }

        @Test func `the system's TLS is refused where the system has none`() {
            var options = TLSOptions()
            options.implementation = .system
            #expect { _ = try TLSContexts(client: options).usesSystem() } throws: {
                ($0 as? TransportError)?.code == .tlsUnavailable
            }
        }
    #endif
}

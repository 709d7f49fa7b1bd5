import Foundation
import Inspector
import MessagingDeviceSupport
import MessagingWebPages
import TestSupport
import Testing

/// The server that a device brings along for the headquarters pages.
@Suite(.turns)
struct PageServerTests {
    private func answer(_ request: String, from server: PageServer) async throws -> String {
        let connection = try await RawConnection.open(port: server.port)
        try await connection.send(Array(request.utf8))
        let bytes = try await connection.receive { _ in false }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func withServer(
        _ site: PageSite = PageSite(first: .locations, brokers: [.locations: "ws://127.0.0.1:61614/a?b=c&d"]),
        _ body: (PageServer) async throws -> Void
    ) async throws {
        let server = try await PageServer.start(site)
        try await body(server)
        await server.stop()
    }

    @Test func `all files of the folder are built in, byte for byte`() throws {
        let folder = URL(fileURLWithPath: #filePath).appending(path: "../../../Examples/Pages/Files").standardized
        let onDisk = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
            $0.contains(".") && !$0.hasSuffix(".swift")
        }
        #expect(Set(WebPages.names) == Set(onDisk))
        for name in onDisk {
            let isBuiltIn = try WebPages.file(name)?.bytes == Array(Data(contentsOf: folder.appending(path: name)))
            #expect(isBuiltIn, "\(name)")
        }
    }

    @Test func `serves each file with its type, and ends the connection`() async throws {
        try await withServer { server in
            for (name, type) in [("style.css", "text/css"), ("stomp.js", "text/javascript")] {
                let answer = try await answer("GET /\(name) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", from: server)
                #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
                #expect(answer.contains("Content-Type: \(type); charset=utf-8\r\n"))
                #expect(answer.hasSuffix(String(decoding: WebPages.file(name)?.bytes ?? [], as: UTF8.self)))
            }
        }
    }

    @Test(arguments: ["/", "/locations.html"])
    func `leads to the page with the broker that it is to open`(path: String) async throws {
        try await withServer { server in
            let answer = try await answer("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n", from: server)
            #expect(answer.hasPrefix("HTTP/1.1 302 Found\r\n"))
            #expect(answer.contains("Location: /locations.html?url=ws://127.0.0.1:61614/a%3Fb%3Dc%26d\r\n"))
        }
    }

    @Test func `keeps the token and the query of the address that leads to the page`() async throws {
        try await withServer { server in
            let token = try #require(server.address.split(separator: "/").last)
            for (target, location) in [
                ("/?url=ws://other:1/a", "/locations.html?url=ws://other:1/a"),
                ("/\(token)/?url=ws://other", "/\(token)/locations.html?url=ws://other"),
                ("/\(token)/", "/\(token)/locations.html?url=ws://127.0.0.1:61614/a%3Fb%3Dc%26d"),
                ("/\(token)", "/\(token)/"),
                ("/?url=%zz", "/locations.html?url=%zz"),
                ("/locations.html?x=1", "/locations.html?x=1&url=ws://127.0.0.1:61614/a%3Fb%3Dc%26d"),
            ] {
                let answer = try await answer("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n", from: server)
                #expect(answer.contains("Location: \(location)\r\n"), "\(target): \(answer)")
            }
        }
    }

    @Test func `answers HEAD like GET, without the body`() async throws {
        try await withServer { server in
            for path in ["/", "/style.css", "/nothing"] {
                let get = try await answer("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n", from: server)
                let head = try await answer("HEAD \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n", from: server)
                #expect(head.hasSuffix("\r\n\r\n"))
                #expect(get.hasPrefix(head))
            }
        }
    }

    @Test func `serves a page as it is when the query names a broker, or nobody knows one`() async throws {
        try await withServer { server in
            let paths = [
                "/locations.html?url=ws://other", "/motions.html",
                // However it names it: the browser would come back to the same address.
                "/locations.html?url=%zz", "/locations.html?x=1&url=%FF", "/locations.html?url=",
            ]
            for path in paths {
                let answer = try await answer("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n", from: server)
                #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
            }
        }
    }

    @Test(arguments: [
        "GET /../Package.swift", "GET /..%2f..%2fetc/passwd", "GET //etc/passwd", "GET /WebPages.swift",
        "GET /style.css/",
    ])
    func `knows no other file`(line: String) async throws {
        try await withServer { server in
            let answer = try await answer("\(line) HTTP/1.1\r\nHost: localhost\r\n\r\n", from: server)
            #expect(answer.hasPrefix("HTTP/1.1 404 Not Found\r\n"))
        }
    }

    @Test(arguments: [
        ("POST / HTTP/1.1\r\n\r\n", "405"), ("PUT / HTTP/1.1\r\n\r\n", "405"), ("GET\r\n\r\n", "400"),
        ("GET http://other/ HTTP/1.1\r\n\r\n", "400"), ("\u{16}\u{3}\u{1}\n\n", "400"), ("\n\n", "400"),
        // Lines end in CR LF: what receivers may read differently is refused.
        ("GET / HTTP/1.1\n\n", "400"), ("GET /\(String(repeating: "a", count: 9000))", "400"),
    ])
    func `answers other requests with what is wrong`(request: String, status: String) async throws {
        try await withServer { server in
            let answer = try await answer(request, from: server)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
        }
    }

    @Test(arguments: [
        "/", "/locations.html", "/locations.js", "/nothing", "/TOKEN/", "/TOKEN", "/TOKEN/inspector.html",
    ])
    func `answers no request of another site, with or without the token`(path: String) async throws {
        let site = PageSite(
            first: .locations, brokers: [.locations: "ws://127.0.0.1:4711/"], frames: FrameLog(), place: "7 Elm Street")
        try await withServer(site) { server in
            let token = server.address.split(separator: "/").last ?? ""
            let path = path.replacing("TOKEN", with: token)
            for fields in [
                "", "Host: evil.example\r\n", "Host: 127.0.0.1.evil.example\r\n",
                "Host: localhost\r\nHost: localhost\r\n",
                "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
                "Host: localhost\r\nOrigin: http://evil.example\r\n",
            ] {
                let answer = try await answer("GET \(path) HTTP/1.1\r\n\(fields)\r\n", from: server)
                #expect(answer.hasPrefix("HTTP/1.1 403 "), "\(fields)")
                #expect(!answer.contains("4711") && !answer.contains("Elm") && !answer.contains(token), "\(fields)")
            }
        }
    }

    @Test func `closes a connection that would be one too many`() async throws {
        let server = try await PageServer.start(
            nil, content: PageSite(first: .motions, brokers: [:]), maximumConnections: 2)
        let request = "GET /frames.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
        let first = try await RawConnection.open(port: server.port)
        let second = try await RawConnection.open(port: server.port)
        // Its bytes may meet a connection that is closed already.
        let refused = try? await answer(request, from: server)
        #expect(refused?.isEmpty ?? true)
        try await first.send(Array(request.utf8))
        let bytes = try await first.receive { _ in false }
        #expect(bytes.starts(with: Array("HTTP/1.1 200 OK\r\n".utf8)))
        // The server lets go of the first connection soon after its end.
        #expect(
            await eventually { (try? await answer(request, from: server))?.hasPrefix("HTTP/1.1 200 OK\r\n") ?? false })
        withExtendedLifetime(second) {}
        await server.stop()
    }

    @Test func `puts a request together that comes byte by byte`() async throws {
        try await withServer { server in
            let connection = try await RawConnection.open(port: server.port)
            for byte in "GET /frames.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8 { try await connection.send([byte]) }
            let bytes = try await connection.receive { _ in false }
            #expect(bytes.starts(with: Array("HTTP/1.1 200 OK\r\n".utf8)))
        }
    }

    @Test func `frees its port`() async throws {
        let site = PageSite(first: .motions, brokers: [:])
        // Not one that the system may give to a connection in between.
        let port = FreePort.next()
        let server = try await PageServer.start(site, port: UInt16(port))
        #expect(server.port == port)
        await server.stop()
        let second = try await PageServer.start(site, port: UInt16(port))
        #expect(second.port == port)
        await second.stop()
    }
}

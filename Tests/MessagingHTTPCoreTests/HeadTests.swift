import MessagingHTTPCore
import MessagingWire
import TestSupport
import Testing

/// What a server reads from the bytes of a request.
struct RequestVector: Sendable, CustomTestStringConvertible {
    enum Expected: Sendable, Equatable {
        case path(String)
        case failed(HTTPError.Code)
        case nothing
    }

    var name: String
    var request: String
    var expected: Expected
    var testDescription: String { name }

    init(_ name: String, _ request: String, _ expected: Expected) {
        self.name = name
        self.request = request
        self.expected = expected
    }

    static let all: [RequestVector] = [
        RequestVector("a page", "GET /index.html HTTP/1.1\r\nHost: h\r\n\r\n", .path("/index.html")),
        RequestVector("a page of an old client", "GET / HTTP/1.0\r\n\r\n", .path("/")),
        RequestVector("HEAD", "HEAD /x?q HTTP/1.1\r\nHost: h\r\n\r\n", .path("/x")),
        RequestVector("asterisk", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", .path("*")),
        RequestVector("URL without a path", "GET http://h?q HTTP/1.1\r\nHost: h\r\n\r\n", .path("/")),
        RequestVector("an MQTT client", "\u{10}\u{0c}\u{0}\u{4}MQTT", .failed(.notHTTP)),
        RequestVector("a STOMP client", "CONNECT\naccept-version:1.2\n\n\u{0}", .failed(.notHTTP)),
        RequestVector("two words", "GET /\r\n\r\n", .failed(.notHTTP)),
        RequestVector("four words", "GET / x HTTP/1.1\r\n\r\n", .failed(.notHTTP)),
        RequestVector("empty line first", "\r\nGET / HTTP/1.1\r\n\r\n", .failed(.malformedHead)),
        RequestVector("target that is not ASCII", "GET /ü HTTP/1.1\r\n\r\n", .failed(.malformedHead)),
        RequestVector("long target", "GET /" + String(repeating: "x", count: 20_000), .failed(.headTooLarge)),
        RequestVector("not yet whole", "GET / HTTP/1.1\r\nHost: h\r\n", .nothing),
    ]
}

@Suite struct HeadTests {
    private func result(of vector: RequestVector, _ split: Split) -> RequestVector.Expected {
        var parser = HTTPRequestParser()
        do throws(HTTPError) {
            for piece in split.pieces(of: Array(vector.request.utf8)) { _ = try parser.receive(piece.span.bytes) }
            return parser.request.map { .path($0.path) } ?? .nothing
        } catch {
            return .failed(error.code)
        }
    }

    @Test(arguments: RequestVector.all)
    func `reads a request the same however it arrives`(vector: RequestVector) {
        for split in Split.allCases { #expect(result(of: vector, split) == vector.expected) }
    }

    @Test func `leaves the bytes after a request to the caller`() throws {
        var parser = HTTPRequestParser()
        let request = "GET /mqtt?x=1 HTTP/1.1\r\nHost: h\r\n\r\n"
        #expect(try parser.receive((Array(request.utf8) + [0x82, 0x80]).span.bytes) == request.utf8.count)
        #expect(parser.request?.query == "x=1")
        #expect(try parser.receive([1, 2, 3].span.bytes) == 0)
    }

    @Test func `leaves the bytes after a response to the caller, and skips interim responses`() throws {
        var parser = HTTPResponseParser()
        let response = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Fine\r\nA: b\r\n\r\n"
        #expect(try parser.receive((Array(response.utf8) + [1, 2]).span.bytes) == response.utf8.count)
        #expect(parser.response?.status == 200 && parser.response?.reason == "Fine")
        #expect(parser.response?.fields.first("a") == "b")
        #expect(try parser.receive([1].span.bytes) == 0)
    }

    @Test func `an answer to HEAD has no body`() throws {
        var output: [UInt8] = []
        try HTTPResponse(status: 200, body: Array("page".utf8)).write(into: &output, omitsBody: true)
        #expect(
            String(decoding: output, as: UTF8.self)
                == "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\n")
    }

    @Test(
        arguments: [
            ("example.com", nil, "example.com"), ("example.com", 443, "example.com:443"), ("::1", 9001, "[::1]:9001"),
            ("[::1]", nil, "[::1]"), ("fe80::1%eth0", 1, "[fe80::1]:1"),
        ] as [(String, UInt16?, String)])
    func `writes a host and its port into a Host field`(host: String, port: UInt16?, expected: String) throws {
        #expect(try HTTPSyntax.authority(host: host, port: port) == expected)
    }

    @Test(arguments: ["", "a b", "a/b", "a\r\nX: y", "bücher", "u@h", "h:80", "%"])
    func `refuses a host that cannot be written`(host: String) {
        let error = #expect(throws: HTTPError.self) { try HTTPSyntax.authority(host: host, port: nil) }
        #expect(error?.code == .invalidHost)
    }

    @Test(arguments: [["X": "a\r\nY: b"], ["X Y": "a"], ["": "a"], ["connection": "close"]] as [HTTPFields])
    func `refuses to write fields that would damage the head`(fields: HTTPFields) {
        var output: [UInt8] = []
        let error = #expect(throws: HTTPError.self) {
            try HTTPResponse(status: 200, fields: fields).write(into: &output)
        }
        #expect(error?.code == .invalidField && output.isEmpty)
    }

    @Test func `a list has the members of all its fields, without empty ones`() {
        let fields: HTTPFields = ["A": "x,, Y ", "a": "\tz"]
        #expect(fields.list("a") == ["x", "Y", "z"])
        #expect(fields.list("A", contains: "y") && !fields.list("A", contains: "xx"))
    }
}

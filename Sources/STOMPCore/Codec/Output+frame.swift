extension [UInt8] {
    /// Appends one frame with a single reservation: command, the lines that `head` writes, `headers`, `content-length`
    /// where asked for, body and NUL. Nothing is appended when it throws.
    ///
    /// - Parameter headRoom: what `head` writes at most.
    @inline(__always)
    mutating func writeFrame(
        _ command: StaticString, _ escaping: STOMPEscaping, headRoom: Int, headers: STOMPHeaders,
        body: RawSpan = RawSpan(), writesContentLength: Bool = false, replacesUnencodable: Bool = false,
        _ head: (inout FrameWriter) -> Void
    ) throws(STOMPUsageError) {
        let room =
            command.utf8CodeUnitCount &+ headRoom &+ FrameWriter.room(for: headers) &+ 15 &+ FrameWriter.numberRoom
            &+ body.byteCount &+ 3
        var problem: FrameWriter.Problem?
        append(addingCapacity: room) { span in
            // `count` says how much was written; what `FrameWriter` claims is checked against the buffer.
            unsafe span.withUnsafeMutableBufferPointer { buffer, count in
                var writer = unsafe FrameWriter(buffer, escaping, replacesUnencodable: replacesUnencodable)
                writer.put(command)
                writer.put(UInt8(ascii: "\n"))
                head(&writer)
                let fields = headers.fields.span
                for index in fields.indices { writer.put(fields[index]) }
                if writesContentLength { writer.put("content-length", UInt64(body.byteCount)) }
                writer.put(UInt8(ascii: "\n"))
                writer.put(body)
                writer.put(UInt8(0))
                problem = writer.problem
                count = problem == nil ? writer.count : 0
            }
        }
        if let problem { throw STOMPUsageError(problem, escaping) }
    }
}

extension STOMPUsageError {
    init(_ problem: FrameWriter.Problem, _ escaping: STOMPEscaping) {
        let place =
            switch escaping {
            case .none: "CONNECT and STOMP 1.0 escape nothing"
            case .v11: "STOMP 1.1 has no escape for it"
            case .v12: "STOMP 1.2 has no form for it"
            }
        let text =
            switch problem {
            case .lineFeed: "A header holds a line feed"
            case .endsWithReturn: "A header value ends with a carriage return"
            case .colonInName: "A header name holds a colon"
            case .emptyName: "A header has an empty name"
            }
        self.init(.unencodableHeader, "\(text), and \(place). Change the header or put the text into the body.")
    }
}

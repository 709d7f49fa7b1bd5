/// Reads the head of one request that arrives in pieces; what follows it is left to the caller.
package struct HTTPRequestParser: Sendable {
    /// The request, once it is whole.
    package private(set) var request: HTTPRequestHead?
    private var head: HTTPHeadParser

    package init(limits: HTTPHeadLimits = HTTPHeadLimits()) {
        head = HTTPHeadParser(limits: limits)
    }

    /// Takes bytes up to the end of the head and returns how many; none once `request` is there.
    ///
    /// - Throws: `notHTTP` as early as the first line allows, `malformedHead`, `headTooLarge`. A peer that speaks HTTP
    ///   can be told with status 400 or 431.
    package mutating func receive(_ bytes: RawSpan) throws(WebSocketHandshakeError) -> Int {
        guard request == nil else { return 0 }
        let consumed = try head.receive(bytes)
        if head.isComplete {
            request = try HTTPRequestHead(startLine: head.startLine, fields: head.fields)
        }
        return consumed
    }
}

package import LoopbackBroker
package import MessagingJudge
import Testing
package import Transport

extension LoopbackBroker {
    /// Starts a broker that judges its clients: stopping it records an issue for each rule that one of them has broken.
    ///
    /// - Parameters:
    ///   - options: those of the broker.
    ///   - clock: a test's own clock, by which late packets are found too.
    ///   - judgesPromises: whether what our clients promise beyond the specification is examined; not for clients of bytes.
    ///   - mayBreak: the rules that the test has a client break on purpose.
    package static func judged(
        _ options: LoopbackBrokerOptions = LoopbackBrokerOptions(), clock: ManualClock? = nil,
        judgesPromises: Bool = true, mayBreak: Set<Clause> = [], fileID: String = #fileID, filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) async throws(TransportError) -> LoopbackBroker {
        var options = options
        let place = SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
        options.judgesClients = true
        options.judging.mayBreak.formUnion(mayBreak)
        options.judging.judgesPromises = judgesPromises
        options.judging.onStop = { violations in
            for violation in violations { Issue.record("\(violation)", sourceLocation: place) }
        }
        return try await start(options, clock: clock)
    }
}

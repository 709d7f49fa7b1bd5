import MessagingShell
import STOMPCore
import STOMPRecords
import Transport

/// What callers use of the client's core; on any thread.
extension STOMPClientCore {
    var name: String { configuration.clientID ?? "" }
    var maximumUnreadBytes: Int { configuration.maximumUnreadBytes }
    var requestTimeout: Int64 { configuration.requestTimeout.inNanoseconds }
    var receivingHook: (@Sendable (inout STOMPMessage) -> Void)? { configuration.messageHook?.receiving }
    var sender: STOMPSender { STOMPSender(core: self) }
    /// The profile of the connected broker.
    var profile: STOMPBrokerProfile { link.perform { $0.engine.profile } }

    var inspector: FrameInspector<STOMPFrameRecord> {
        link.tap {
            FrameInspector { [weak link] bytes, _, cuts in
                // CONNECTED changes it.
                let version = link?.perform { $0.engine.version } ?? .v12
                STOMPRecordDecoder.cut(bytes, version: version, into: &cuts)
            }
        }
    }

    func explain(_ error: STOMPUsageError) -> STOMPError {
        if error.code == .disconnecting { return reasonConnectionEnds(error) ?? STOMPError(error) }
        guard error.code == .notConnected, case .disconnected = news.state else { return STOMPError(error) }
        return reasonNotSupervised
    }
}

import MQTTCore
import MQTTRecords
import MessagingShell
import Transport

/// What callers' tasks use, on any thread.
extension MQTTClientCore {
    var name: String { link.perform { $0.engine.clientID } }
    var maximumUnreadBytes: Int { settings.maximumUnreadBytes }
    var requestTimeout: Int64 { settings.engineOptions.value.requestTimeout }
    var receivingHook: (@Sendable (inout MQTTMessage) -> Void)? { settings.messageHook?.receiving }
    var sender: MQTTSender { MQTTSender(core: self) }

    var inspector: FrameInspector<MQTTPacketRecord> {
        link.tap {
            let aliases = MQTTSeenAliases()
            return FrameInspector { [weak link] bytes, direction, cuts in
                // It may have fallen back. CONNECT carries its own.
                let version = link?.perform { $0.engine.version } ?? .v5_0
                MQTTRecordDecoder.cut(bytes, version: version, direction, aliases, into: &cuts)
            }
        }
    }

    /// Opens the session store, if there is one, before anything depends on it.
    nonisolated(nonsending) func prepareStore(for purpose: MQTTPersistence.Purpose) async throws(MQTTError) {
        if let persistence { try await persistence.prepare(self, for: purpose) }
    }

    /// Acknowledges a message for its receiver.
    func acknowledge(_ delivery: UInt64) {
        let now = loop.now
        link.perform { $0.acknowledge(delivery, at: now) }
    }

    func explain(_ error: MQTTUsageError) -> MQTTError {
        if error.code == .closing { return reasonConnectionEnds(error) ?? MQTTError(error) }
        guard error.code == .notConnected, let reason = link.perform({ $0.publishers.reasonNotSupervised }) else {
            return MQTTError(error)
        }
        return reason.value
    }

    // MARK: Leaving

    /// Disconnects and closes the session store.
    func disconnect(_ reason: MQTTReasonCode = .normalDisconnection, properties: MQTTProperties = []) async {
        await supervisor.stop {
            self.subscriptions.leave()
            self.sayGoodbye(reason, properties: properties)
        }
        await persistence?.close(self)
    }

    /// Discards the session in this client. Returns false if there is a connection.
    func discardSession(cleanStart: Bool) async -> Bool {
        await loop.result {
            var isDiscarded = false
            self.link.performNow { machine, afterLock, now in
                isDiscarded = machine.discardSession(cleanStart: cleanStart, at: now, into: afterLock)
            }
            return isDiscarded
        }
    }

    /// Makes the server discard the session, with a connection that sends nothing but CONNECT and DISCONNECT. With 5.0
    /// CONNECT has Clean Start; before, only Clean Session discards it [MQTT-3.1.2-6].
    func discardSessionAtServer() async {
        link.perform { machine in
            machine.onlyDiscards = true
            machine.engine.cleanStart = true
        }
        try? await supervisor.connect(cancelled: .cancelledWait)
        await supervisor.stop {
            self.sayGoodbye(.normalDisconnection, properties: [.sessionExpiryInterval(0)], atOnce: true)
        }
        link.perform { $0.onlyDiscards = false }
    }

    /// Throws if DISCONNECT cannot carry this. Without a connection nothing is sent.
    func checkGoodbye(_ reason: MQTTReasonCode, _ properties: MQTTProperties) throws(MQTTError) {
        try asking { machine throws(MQTTUsageError) in
            guard machine.engine.phase.isOpen else { return }
            try machine.engine.checkDisconnect(reason: reason, properties: properties)
        }
    }
}

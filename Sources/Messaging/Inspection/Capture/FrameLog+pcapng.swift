extension FrameLog {
    /// What the log holds as a capture file in the format pcapng, which Wireshark and tshark read.
    ///
    /// Each connection is a TCP connection to port 1883 or 61613 of an address for documentation, however the bytes
    /// really went; the first segment of each frame has its type and destination as comment. Secrets are masked, in the
    /// bytes, too.
    public func pcapng() -> [UInt8] {
        let (frames, openings) = capture()
        var file = CaptureFile(
            application: "swift-messaging", interface: "frames",
            description: "Frames of MQTT and STOMP clients, in TCP made up around them")
        var lastOf: [Int: Int] = [:]
        for (index, frame) in frames.enumerated() { lastOf[frame.connection] = index }
        var conversations: [Int: CapturedConversation] = [:]
        for (index, frame) in frames.enumerated() {
            var conversation =
                conversations.removeValue(forKey: frame.connection)
                ?? Self.begin(frame, opening: openings[frame.connection], in: &file)
            conversation.add(frame, to: &file)
            if lastOf[frame.connection] == index {
                conversation.close(in: &file)
            } else {
                conversations[frame.connection] = conversation
            }
        }
        return file.bytes
    }

    private static func begin(
        _ frame: LoggedFrame, opening: LoggedFrame?, in file: inout CaptureFile
    ) -> CapturedConversation {
        var conversation = CapturedConversation(number: frame.connection, protocolName: frame.protocolName)
        let first = frame.opensConnection ? frame : opening ?? frame
        conversation.open(at: first.time * 1_000, in: &file)
        if !frame.opensConnection, let opening {
            conversation.add(opening, remark: "; what came between it and the next was dropped from the log", to: &file)
        }
        return conversation
    }
}

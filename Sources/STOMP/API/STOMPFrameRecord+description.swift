import Messaging
import STOMPCore

extension STOMPFrameRecord: CustomStringConvertible {
    /// The frame in one line, without its direction: `SEND destination:/topic/a "on" (2 bytes)`.
    public var description: String {
        guard let frame else { return "heart-beat" }
        var words = [frame.commandName] + frame.headers.map { "\($0.name):\($0.value)" }
        if bodyCount > 0 { words += [FrameText.preview(frame.body, of: bodyCount), "(\(bodyCount) bytes)"] }
        return words.joined(separator: " ")
    }
}

import STOMPCore

/// One codec vector: bytes, and the frames or the violation that they must give.
struct Vector: Sendable, CustomStringConvertible {
    /// The section of the specification that it shows, and what about it.
    var section: String
    var version: STOMPVersion
    var bytes: [UInt8]
    var frames: [STOMPFrame]
    var violation: STOMPProtocolError.Code?
    var limits = STOMPLimits()

    var description: String { "\(version) \(section)" }

    /// Bytes that give exactly these frames.
    init(_ section: String, _ version: STOMPVersion, _ text: String, _ frames: STOMPFrame...) {
        self.init(section, version, text, frames, nil)
    }

    /// The same in version 1.2.
    init(_ section: String, _ text: String, _ frames: STOMPFrame...) {
        self.init(section, .v12, text, frames, nil)
    }

    /// Bytes that give these frames and then a violation.
    init(
        _ section: String, _ version: STOMPVersion, _ text: String, after frames: STOMPFrame...,
        fails violation: STOMPProtocolError.Code
    ) {
        self.init(section, version, text, frames, violation)
    }

    /// The same in version 1.2.
    init(_ section: String, _ text: String, after frames: STOMPFrame..., fails violation: STOMPProtocolError.Code) {
        self.init(section, .v12, text, frames, violation)
    }

    private init(
        _ section: String, _ version: STOMPVersion, _ text: String, _ frames: [STOMPFrame],
        _ violation: STOMPProtocolError.Code?
    ) {
        self.section = section
        self.version = version
        bytes = Array(text.utf8)
        self.frames = frames
        self.violation = violation
    }

    func bytes(_ bytes: [UInt8]) -> Vector {
        var copy = self
        copy.bytes = bytes
        return copy
    }

    func limits(_ change: (inout STOMPLimits) -> Void) -> Vector {
        var copy = self
        change(&copy.limits)
        return copy
    }

    static let all =
        commands + headers + escapes + bodies + lengths + lineEnds + limits + brokers + handshakes + sequences
}

func frame(_ command: STOMPCommand, _ headers: STOMPHeaders = [:], _ body: String = "") -> STOMPFrame {
    STOMPFrame(command, headers: headers, body: Array(body.utf8))
}

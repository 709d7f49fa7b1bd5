import Foundation
import MessagingShell
import MessagingWire
import Testing

private struct Failure: ClientError {
    let code: ErrorCode<Failure>
    let message: String
    let underlying: (any Error)?

    init(_ code: ErrorCode<Failure>, _ message: String, answer: Failure?, underlying: (any Error)?) {
        (self.code, self.message, self.underlying) = (code, message, underlying)
    }
}

/// The texts about payloads that a screen shows.
@Suite struct DecodeFailureTests {
    private struct Fleet: Codable, Equatable {
        struct Vehicle: Codable, Equatable {
            var speed: Double
        }
        var vehicles: [Vehicle]
    }

    /// The text about a payload of JSON that is not a fleet.
    private func text(_ json: String, as mediaType: String? = nil) throws -> String {
        let result = JSONPayload().value(of: Fleet.self, from: Array(json.utf8)[...], mediaType: mediaType)
        guard case .failure(let failure) = result else { return "a value" }
        #expect(failure.localizedDescription == failure.message && "\(failure)" == failure.message)
        return failure.message
    }

    @Test func `a failure names the value by its path and says what to do`() throws {
        #expect(
            try text(#"{"vehicles":[{"speed":1},{}]}"#)
                == "The payload (29 bytes) is not a valid Fleet: the value of 'vehicles[1].speed' is missing. Make the property optional, if senders may leave it out."
        )
        #expect(
            try text(#"{"vehicles":[{"speed":"1"}]}"#)
                == "The payload (28 bytes) is not a valid Fleet: the value of 'vehicles[0].speed' is not a Double. Use the same type at the sender and here."
        )
        #expect(try text(#"{"vehicles":null}"#).contains("the value of 'vehicles' is "))
        #expect(
            try text("[]").hasPrefix("The payload (2 bytes) is not a valid Fleet: it is not a Dictionary<String, "))
    }

    private struct Sample: Codable, Equatable {
        var at: Date
    }

    @Test func `a date that is none is named by its path`() {
        let payload = Array(#"{"at":"yesterday"}"#.utf8)
        let result = JSONPayload().value(of: Sample.self, from: payload[...], mediaType: nil)
        guard case .failure(let failure) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(failure.message.contains("the value of 'at'"), "\(failure)")
        #expect(failure.message.contains("'yesterday'"), "\(failure)")
    }

    @Test(arguments: [
        ("2026-11-26T14:01:02Z", 1_795_701_662.0), ("2026-11-26T14:01:02.5Z", 1_795_701_662.5),
        ("2026-11-26T14:01:02.123Z", 1_795_701_662.123), ("2026-11-26T15:01:02+01:00", 1_795_701_662.0),
        ("2026-11-26T15:01:02.250+01:00", 1_795_701_662.25), ("1969-12-31T23:59:59.750Z", -0.25),
    ])
    func `dates are read with their fractions and offsets`(text: String, seconds: Double) throws {
        let payload = Array(#"{"at":"\#(text)"}"#.utf8)
        let date = try JSONPayload().decode(Sample.self, from: payload[...]).at
        #expect(abs(date.timeIntervalSince1970 - seconds) < 0.000_1)
    }

    @Test(arguments: [
        (1_795_701_662.0, "2026-11-26T14:01:02Z"), (1_795_701_662.25, "2026-11-26T14:01:02.250Z"),
        (1_795_701_662.9996, "2026-11-26T14:01:03Z"), (-0.25, "1969-12-31T23:59:59.750Z"),
        (1_795_701_662.1234, "2026-11-26T14:01:02.123Z"), (1_795_701_662.0004, "2026-11-26T14:01:02Z"),
    ])
    func `dates are written with their milliseconds, if they have any`(seconds: Double, text: String) throws {
        let payload = try JSONPayload().encode(Sample(at: Date(timeIntervalSince1970: seconds)))
        #expect(String(decoding: payload, as: UTF8.self) == #"{"at":"\#(text)"}"#)
    }

    @Test func `a failure to read another format contains no jargon of Swift's decoders`() throws {
        let text = try text("21.5 degrees")
        #expect(text.hasPrefix("The payload (12 bytes) is not a valid Fleet: "))
        #expect(text.hasSuffix(". Check what the sender sends."))
        for jargon in ["DecodingError", "Context", "codingPath", "NSError", "Optional("] {
            #expect(!text.contains(jargon), "\(text)")
        }
        #expect(
            try self.text("{}", as: "text/plain")
                == "The message is declared as text/plain, but a Fleet as application/json was expected. Correct the content type at the sender, or accept both formats with .anyOf."
        )
    }

    @Test func `a failure to read text reports that the payload is not UTF-8`() {
        guard case .failure(let failure) = ValueFormat<String>.text.value(in: [0xFF], mediaType: nil) else {
            Issue.record("It is text.")
            return
        }
        #expect(failure.message == "The payload (1 byte) is not text in UTF-8. Check what the sender sends.")
    }

    @Test func `the error of an application's closure is shown with its own sentence`() {
        struct NoNumber: LocalizedError {
            var errorDescription: String? { "There are letters in it" }
        }
        let format = ValueFormat<Int>(contentType: nil) { _ in
            []
        } decode: { _ in
            throw NoNumber()
        }
        guard case .failure(let failure) = format.value(in: [1, 2], mediaType: nil) else {
            Issue.record("It is a number.")
            return
        }
        #expect(failure.message == "The payload (2 bytes) is not a valid Int: There are letters in it.")
        #expect(failure.underlying is NoNumber)
    }

    @Test func `the error for a value that cannot be encoded names its type and its topic`() {
        #expect {
            try ValueFormat<Double>(JSONPayload()).payload(of: .nan, for: "speed", throwing: Failure.self)
        } throws: { error in
            let message = (error as? Failure)?.message ?? ""
            return message.hasPrefix("The Double cannot be encoded for 'speed': ")
                && message.hasSuffix(" Change the value, or how its type is encoded.")
        }
    }
}

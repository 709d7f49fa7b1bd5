import MessagingShell
import Testing

@Suite("Formats of payloads")
struct PayloadCodingTests {
    private struct Digits: PayloadCoding {
        let contentType: String

        func encode(_ value: some Encodable) throws -> [UInt8] { Array("\(value)".utf8) }

        func decode<Value: Decodable>(_ type: Value.Type, from payload: ArraySlice<UInt8>) throws -> Value {
            guard let value = Int(String(decoding: payload, as: UTF8.self)) as? Value else {
                throw DecodeFailure("These are not digits.")
            }
            return value
        }
    }

    private struct Reading: ReceivedMessage {
        let mediaType: String?
        var content: ArraySlice<UInt8> { Array("21".utf8)[...] }
        var description: String { "Reading" }
    }

    @Test(arguments: [
        "application/x-reading", "application/X-Reading", "application/x-reading;v=1", "Application/X-READING ; v=1",
        "application/x-reading\t;v=1",
    ])
    func `a format accepts its own media type however it writes it`(contentType: String) throws {
        let coding = Digits(contentType: contentType)
        #expect(try Reading(mediaType: "application/x-reading").value(Int.self, as: coding) == 21)
        #expect(try Reading(mediaType: nil).value(Int.self, as: coding) == 21)
        for other in ["application/x-readings", "application/x-readin", "text/plain", ""] {
            #expect(throws: DecodeFailure.self) { try Reading(mediaType: other).value(Int.self, as: coding) }
        }
        let several = PayloadCodings(.json, [coding])
        #expect(several.accepts(mediaType: "application/x-reading"))
    }
}

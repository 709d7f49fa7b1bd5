import MQTTCore
import TestSupport
import Testing

@Suite("Vectors", .heavy)
struct VectorTests {
    static let all =
        Vector.headers + Vector.connects + Vector.connacks + Vector.publishes + Vector.acknowledgements
        + Vector.subscribing + Vector.endings + Vector.properties + Vector.propertyPlaces

    @Test("are many")
    func count() {
        #expect(Self.all.count >= 300)
    }

    @Test("are read alike whole, byte by byte and cut anywhere", arguments: all)
    func vector(vector: Vector) throws {
        var random = SeededGenerator(seed: Campaign.seed)
        for version in vector.versions {
            let run = DecodingRun(whole: vector.bytes, version: version)
            #expect(DecodingRun(byteByByte: vector.bytes, version: version) == run)
            for _ in 0..<3 { #expect(DecodingRun(split: vector.bytes, using: &random, version: version) == run) }
            try check(run, vector, version)
            // What follows a whole packet is the next one.
            if case .waits = vector.outcome { continue }
            let followed = DecodingRun(whole: vector.bytes + [0xC0, 0x00], version: version)
            #expect(followed.packets == (run.violation == nil ? run.packets + [.pingreq] : run.packets))
        }
    }

    private func check(_ run: DecodingRun, _ vector: Vector, _ version: MQTTVersion) throws {
        switch vector.outcome {
        case .packet(let packet):
            #expect(run.packets == [packet])
            #expect(run.violation == nil)
            #expect(run.waiting == 0)
            var bytes: [UInt8] = []
            try packet.encode(into: &bytes, version: version)
            #expect(bytes == vector.bytes)
        case .reads(let packet):
            #expect(run.packets == [packet])
            #expect(run.violation == nil)
            #expect(run.waiting == 0)
        case .refused(let code, let clause):
            #expect(run.packets == [])
            #expect(run.violation?.reasonCode == code)
            #expect(run.violation?.clause == clause, "\(run.violation?.description ?? "not refused")")
        case .waits:
            #expect(run.packets == [])
            #expect(run.violation == nil)
            #expect(run.waiting == vector.bytes.count)
        }
    }
}

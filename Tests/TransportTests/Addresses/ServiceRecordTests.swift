import TestSupport
import Testing
import Transport

@Suite struct ServiceRecordTests {
    /// A message of DNS with a question and answers.
    private func message(_ answers: [[UInt8]], question: String = "_mqtt._tcp.example.com") -> [UInt8] {
        [0, 1, 0x81, 0x80, 0, 1, 0, UInt8(answers.count), 0, 0, 0, 0] + name(question) + [0, 33, 0, 1]
            + answers.joined()
    }

    private func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    /// An answer to the question, whose name is at 12.
    private func answer(_ type: UInt8, _ data: [UInt8]) -> [UInt8] {
        [0xC0, 12, 0, type, 0, 1, 0, 0, 0, 60, UInt8(data.count >> 8), UInt8(data.count & 255)] + data
    }

    private let first = ServiceRecord(priority: 1, weight: 2, port: 1883, target: "one.example.com")

    private var whole: [UInt8] {
        message([
            answer(33, [0, 1, 0, 2, 7, 91] + name("one.example.com")), answer(1, [127, 0, 0, 1]),
            // The end of the question's name: 12 + 1 + 5 + 1 + 4.
            answer(33, [0, 2, 0, 0, 7, 92, 3] + Array("two".utf8) + [0xC0, 23]),
        ])
    }

    @Test func `the records of an answer are read, with compressed names`() {
        let second = ServiceRecord(priority: 2, weight: 0, port: 1884, target: "two.example.com")
        #expect(ServiceRecord.parse(whole[...]) == [first, second])
    }

    @Test func `an answer that is cut off, or damaged, is read as far as it makes sense`() {
        let whole = whole
        for count in 0..<whole.count {
            let records = ServiceRecord.parse(whole.prefix(count))
            #expect(records.count < 2 && records.allSatisfy { $0 == first })
        }
        var random = SeededGenerator(seed: Campaign.seed)
        for _ in 0..<Campaign.rounds(1_000_000, least: 1_000) {
            var damaged = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            for record in ServiceRecord.parse(damaged[...]) { #expect(record.target.utf8.count <= 255) }
        }
    }

    @Test(
        arguments: [
            [0xC0, 51], [0xC0, 255], [1, 0x2F, 0], [1, 0x3A, 0], [1, 0, 0], [0], [0x40, 0],
            Array(repeating: [63] + Array(repeating: 0x61, count: 63), count: 4).flatMap { $0 } + [0],
        ] as [[UInt8]])
    func `a name that never ends, is too long, is empty, or is no host's is refused`(name: [UInt8]) {
        #expect(ServiceRecord.parse(message([answer(33, [0, 1, 0, 2, 7, 91] + name)])[...]) == [])
    }

    @Test func `a record without a port is left out, and the others count`() {
        let withoutPort = answer(33, [0, 1, 0, 2, 0, 0] + name("none.example.com"))
        let good = answer(33, [0, 1, 0, 2, 7, 91] + name("one.example.com"))
        #expect(ServiceRecord.parse(message([withoutPort, good])[...]) == [first])
    }

    @Test func `servers are tried by priority, and among equals in proportion to their weights`() {
        let records = [
            ServiceRecord(priority: 2, weight: 0, port: 1, target: "last"),
            ServiceRecord(priority: 1, weight: 90, port: 1, target: "often"),
            ServiceRecord(priority: 1, weight: 9, port: 1, target: "seldom"),
            ServiceRecord(priority: 1, weight: 0, port: 1, target: "hardly"),
        ]
        var random = SeededGenerator(seed: 1)
        var first: [String: Int] = [:]
        for _ in 0..<10_000 {
            let targets = ServiceRecord.ordered(records, using: &random).map(\.target)
            #expect(targets.last == "last" && Set(targets).count == 4)
            first[targets[0], default: 0] += 1
        }
        #expect((8_500...9_300).contains(first["often"] ?? 0) && (800...1_200).contains(first["seldom"] ?? 0))
        #expect((50...200).contains(first["hardly"] ?? 0))
    }

    @Test func `a domain without servers is an error that names the record`() async {
        let failure = await #expect(throws: TransportError.self) {
            try await ServiceRecord.lookUp("_mqtt._tcp.nobody.invalid")
        }
        #expect(failure?.code == .unknownHost && failure?.message.contains("_mqtt._tcp.nobody.invalid") == true)
    }
}

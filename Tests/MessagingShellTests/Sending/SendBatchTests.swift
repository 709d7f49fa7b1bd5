import Testing

@testable import MessagingShell

@Suite("Batches of messages")
struct SendBatchTests {
    @Test func `the numbers of batches begin again, and leave a bit of the token to its owner`() {
        var batches = SendBatches<Int, Int>()
        batches.lastID = 0x3FFF_FFFE
        let all = (0..<3).map { SendBatch<Int, Int>([$0]) }
        for batch in all { batches.add(batch) }
        #expect(all.map(\.id) == [0x3FFF_FFFF, 1, 2])
        #expect(all.allSatisfy { $0.token(of: 0) & 1 << 62 == 0 })
        // A number whose batch still waits is passed over.
        batches.lastID = 0
        let another = SendBatch<Int, Int>([3])
        batches.add(another)
        #expect(another.id == 3)
    }

    @Test func `a batch contains its own messages alone`() {
        var batches = SendBatches<Int, Int>()
        let all = (0..<2).map { SendBatch<Int, Int>([$0, $0]) }
        for batch in all { batches.add(batch) }
        #expect(all[0].contains(all[0].token(of: 1)) && !all[0].contains(all[1].token(of: 1)))
        // The token of a message that is in no batch.
        #expect(!all[0].contains(all[0].id << 32))
    }
}

import ClientTestSupport
import LoopbackBroker
import STOMP
import TestSupport
import Testing

/// Messages that are so large that they are written from the caller's own bytes.
@Suite("Client: large messages", .turns)
struct LargeMessageTests {
    /// Every byte says which message it belongs to, and where.
    private static func body(_ number: Int) -> [UInt8] {
        let count = number % 3 == 0 ? 300_000 + number * 1_001 : number * 10
        return (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) }
    }

    @Test(arguments: [true, false], [true, false])
    func `messages arrive whole, large and small ones of several tasks`(
        isConfirmed: Bool, isInspected: Bool
    ) async throws {
        let broker = try await LoopbackBroker.judged()
        let (sender, reader) = (try STOMPClient(broker.stompURL), try STOMPClient(broker.stompURL))
        for client in [sender, reader] { try await client.connect() }
        if isInspected { sender.inspect(into: FrameLog()) }
        let messages = try await reader.subscribe(to: "/topic/large", buffer: BufferPolicy(overflow: .pauseReading))
        let numbers = 0..<24
        try await withThrowingTaskGroup(of: Void.self) { group in
            for start in 0..<4 {
                group.addTask {
                    for number in numbers where number % 4 == start {
                        let options = STOMPSendOptions(headers: ["number": "\(number)"])
                        if isConfirmed {
                            try await sender.sendAndConfirm(Self.body(number), to: "/topic/large", options: options)
                        } else {
                            try await sender.send(Self.body(number), to: "/topic/large", options: options)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        var left = Set(numbers)
        for try await message in messages {
            let number = try #require(message.headers["number"].flatMap { Int($0) })
            #expect(message.bytes == Self.body(number), "message \(number)")
            #expect(left.remove(number) != nil)
            if left.isEmpty { break }
        }
        for client in [sender, reader] { await client.disconnect() }
        await broker.stop()
    }
}

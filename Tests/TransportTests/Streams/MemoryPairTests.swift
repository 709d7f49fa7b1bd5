import TestSupport
import Testing
import Transport

@Suite(.turns) struct MemoryPairTests {
    private func write(_ bytes: [UInt8], to stream: MemoryStream) -> IOResult {
        bytes.withUnsafeBytes { stream.write(from: $0) }
    }

    private func read(_ count: Int = 100, from stream: MemoryStream) -> (IOResult, [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: count)
        let result = buffer.withUnsafeMutableBytes { stream.read(into: $0) }
        if case .bytes(let count) = result { return (result, Array(buffer[..<count])) }
        return (result, [])
    }

    @Test func `what one end writes the other reads, then its end`() {
        let pair = MemoryPair.make()
        #expect(read(from: pair.server).0 == .wouldBlock)
        #expect(write([1, 2, 3], to: pair.client) == .bytes(3))
        #expect(read(2, from: pair.server).1 == [1, 2])
        pair.client.endWriting()
        #expect(read(from: pair.server).1 == [3])
        #expect(read(from: pair.server).0 == .endOfStream)
        #expect(write([9], to: pair.server) == .bytes(1))
        #expect(read(from: pair.client).1 == [9])
        #expect(write([4], to: pair.client) == .failed(32))
    }

    @Test func `takes no more than its capacity and returns no more than asked`() {
        let pair = MemoryPair.make()
        pair.client.changeFaults {
            $0.capacity = 5
            $0.bytesPerRead = 2
        }
        #expect(write(Array(0..<10), to: pair.client) == .bytes(5))
        #expect(write([5], to: pair.client) == .wouldBlock)
        #expect(read(from: pair.server).1 == [0, 1])
        #expect(write([5, 6, 7], to: pair.client) == .bytes(2))
        #expect(read(from: pair.server).1 == [2, 3])
        #expect(read(from: pair.server).1 == [4, 5])
        #expect(read(from: pair.server).1 == [6])
    }

    @Test func `cuts both ways after so many bytes, which still arrive`() {
        let pair = MemoryPair.make()
        pair.client.changeFaults { $0.bytesUntilCut = 4 }
        #expect(write([7], to: pair.server) == .bytes(1))
        #expect(write([1, 2, 3], to: pair.client) == .bytes(3))
        #expect(write([4, 5, 6], to: pair.client) == .bytes(1))
        #expect(write([5], to: pair.client) == .failed(32))
        #expect(write([5], to: pair.server) == .failed(32))
        #expect(read(from: pair.server).1 == [1, 2, 3, 4])
        #expect(read(from: pair.server).0 == .failed(104))
        #expect(read(from: pair.client).1 == [7])
        #expect(read(from: pair.client).0 == .failed(104))
    }

    @Test func `frozen, nothing moves and nobody is told`() {
        let pair = MemoryPair.make()
        pair.client.changeFaults { $0.isFrozen = true }
        #expect(write([1], to: pair.client) == .bytes(1))
        pair.client.close()
        #expect(read(from: pair.server).0 == .wouldBlock)
        pair.client.changeFaults { $0.isFrozen = false }
        #expect(read(from: pair.server).1 == [1])
        #expect(read(from: pair.server).0 == .endOfStream)
    }

    @Test func `inverts the bytes that it was told to damage`() {
        let pair = MemoryPair.make()
        pair.client.changeFaults { $0.bytesToCorrupt = 2 }
        #expect(write([0, 1, 2, 3], to: pair.client) == .bytes(4))
        #expect(read(from: pair.server).1 == [255, 254, 2, 3])
    }

    @Test func `nothing can be written to an end that is closed`() {
        let pair = MemoryPair.make()
        pair.server.close()
        #expect(write([1], to: pair.client) == .failed(32))
        #expect(read(from: pair.client).0 == .endOfStream)
    }
}

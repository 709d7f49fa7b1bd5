import Testing

@testable import MessagingWire

@Suite struct OwnedMemoryTests {
    /// Counts the elements that are alive.
    private final class Counter {
        var alive = 0
    }

    private struct Element: ~Copyable {
        let number: Int
        let counter: Counter

        init(_ number: Int, _ counter: Counter) {
            self.number = number
            self.counter = counter
            counter.alive += 1
        }

        deinit { counter.alive -= 1 }
    }

    @Test func `an array owns its elements until they are moved out`() {
        let counter = Counter()
        do {
            var array = UniqueArray<Element>()
            for number in 0..<9 { array.append(Element(number, counter)) }
            #expect(array.count == 9 && counter.alive == 9)
            let third = array.remove(at: 2).number
            let (next, last) = (array[2].number, array[7].number)
            #expect(third == 2 && next == 3 && last == 8)
            var popped: [Int] = []
            if let last = array.popLast() { popped.append(last.number) }
            #expect(popped == [8])
            let count = array.count
            #expect(count == 7 && counter.alive == 7)
        }
        #expect(counter.alive == 0)
    }

    @Test func `draining passes on every element once, in order, and may fill the array again`() {
        let counter = Counter()
        var array = UniqueArray<Element>()
        array.drain { _ in Issue.record("an empty array has nothing to drain") }
        for number in 0..<5 { array.append(Element(number, counter)) }
        var seen: [Int] = []
        let capacity = array.capacity
        array.drain { seen.append($0.number) }
        #expect(seen == [0, 1, 2, 3, 4] && array.isEmpty && array.capacity == capacity)
        #expect(counter.alive == 0)
    }

    @Test func `a box holds one value and ends it`() {
        let counter = Counter()
        do {
            let box = Box(Element(4, counter))
            #expect(box.value.number == 4 && counter.alive == 1)
        }
        #expect(counter.alive == 0)
        var number = Box(1)
        number.value += 1
        #expect(number.value == 2)
    }

    @Test func `no box takes the room of a pointer`() {
        let size = MemoryLayout<Box<Element>?>.size
        #expect(size == MemoryLayout<Int>.size)
    }
}

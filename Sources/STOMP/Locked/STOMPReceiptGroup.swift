import Messaging
import Synchronization
import Transport
import Wire

/// Frames whose receipts are awaited together: a batch, or one frame whose receipt somebody asks for later.
final class STOMPReceiptGroup: @unchecked Sendable {
    // Sendable because everything is touched under the link's lock only.
    private struct Wait: ~Copyable, Sendable {
        let callerID: UInt64
        let few: Int
        let waiter: Waiter<STOMPMachine.ReceiptAnswer>

        consuming func end(_ answer: STOMPMachine.ReceiptAnswer) -> Resumption<STOMPMachine.ReceiptAnswer> {
            Resumption(waiter, answer)
        }
    }

    var outstanding = 0
    /// The first.
    var failure: STOMPError?
    private var waits = UniqueArray<Wait>()

    var answer: STOMPMachine.ReceiptAnswer { failure.map { .failure($0) } ?? .success(()) }

    func add(_ waiter: consuming Waiter<STOMPMachine.ReceiptAnswer>, callerID: UInt64, few: Int) {
        waits.append(Wait(callerID: callerID, few: few, waiter: waiter))
    }

    func cancel(_ callerID: UInt64) -> Resumption<STOMPMachine.ReceiptAnswer>? {
        for index in waits.indices where waits[index].callerID == callerID {
            return waits.remove(at: index).end(.failure(.cancelledWait))
        }
        return nil
    }

    /// Takes out the callers that wait for no fewer receipts than are outstanding.
    func takeReady(into ended: inout UniqueArray<Resumption<STOMPMachine.ReceiptAnswer>>) {
        var index = 0
        while index < waits.count {
            if waits[index].few >= outstanding {
                ended.append(waits.remove(at: index).end(answer))
            } else {
                index += 1
            }
        }
    }
}

extension STOMPClientCore {
    /// Waits until at most `few` receipts of a group are outstanding.
    nonisolated(nonsending) func wait(for group: STOMPReceiptGroup, downTo few: Int = 0) async throws(STOMPError) {
        let callerID = ids.add(1, ordering: .relaxed).newValue
        let result = await waiting { waiter in
            var waiter: Waiter<STOMPMachine.ReceiptAnswer>? = waiter
            let ready = link.perform { _ -> STOMPMachine.ReceiptAnswer? in
                if group.outstanding <= few { return group.answer }
                if Task.isCancelled { return .failure(.cancelledWait) }
                if let waiter = waiter.take() { group.add(waiter, callerID: callerID, few: few) }
                return nil
            }
            if let ready { waiter.take()?.resume(returning: ready) }
        } onCancel: {
            link.perform { _ in group.cancel(callerID) }?.resume()
        }
        try result.get()
    }
}

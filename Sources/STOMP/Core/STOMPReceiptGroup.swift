import Messaging
import Synchronization
import Transport

/// Frames whose receipts are awaited together: a batch, or one frame whose receipt somebody asks for later.
final class STOMPReceiptGroup: @unchecked Sendable {
    // Sendable because everything is touched under the link's lock only.
    typealias Waiter = UnsafeContinuation<STOMPMachine.ReceiptAnswer, Never>

    var outstanding = 0
    /// The first.
    var failure: STOMPError?
    private var waiters: [(callerID: UInt64, few: Int, waiter: Waiter)] = []

    var answer: STOMPMachine.ReceiptAnswer { failure.map { .failure($0) } ?? .success(()) }

    func add(_ waiter: Waiter, callerID: UInt64, few: Int) {
        waiters.append((callerID, few, waiter))
    }

    func cancel(_ callerID: UInt64) -> Waiter? {
        guard let index = waiters.firstIndex(where: { $0.callerID == callerID }) else { return nil }
        return waiters.remove(at: index).waiter
    }

    /// Takes out who waits for no fewer receipts than are outstanding.
    func takeReady(_ body: (Waiter) -> Void) {
        guard waiters.contains(where: { $0.few >= outstanding }) else { return }
        for entry in waiters where entry.few >= outstanding { body(entry.waiter) }
        waiters.removeAll { $0.few >= outstanding }
    }
}

extension STOMPClientCore {
    /// Waits until at most `few` receipts of a group are outstanding.
    nonisolated(nonsending) func wait(for group: STOMPReceiptGroup, downTo few: Int = 0) async throws(STOMPError) {
        let callerID = ids.add(1, ordering: .relaxed).newValue
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: STOMPReceiptGroup.Waiter) in
                let ready = link.perform { _ -> STOMPMachine.ReceiptAnswer? in
                    if group.outstanding <= few { return group.answer }
                    if Task.isCancelled { return .failure(.cancelledWait) }
                    group.add(waiter, callerID: callerID, few: few)
                    return nil
                }
                if let ready { waiter.resume(returning: ready) }
            }
        } onCancel: {
            let waiter = link.perform { _ in group.cancel(callerID) }
            waiter?.resume(returning: .failure(.cancelledWait))
        }
        try result.get()
    }
}

/// The receipt of one frame, to be awaited by whomever, now or later; made by
/// ``STOMPClient/sendForReceipt(_:to:options:in:)``.
public struct STOMPReceipt: Sendable {
    let core: STOMPClientCore
    let group: STOMPReceiptGroup

    /// Returns when the broker has processed the frame.
    ///
    /// - Throws: ``STOMPError`` as ``STOMPClient/sendAndConfirm(_:to:options:in:)-([UInt8],_,_,_)`` does.
    public nonisolated(nonsending) func confirmed() async throws(STOMPError) {
        try await core.sender.wait(for: group)
    }
}

import MessagingShell
import Transport

@testable import Inspector

/// Requests to the inspector's page: the same answer for every splitting, and no frames without the token.
enum PageRequests {
    private static let router = PageRouter(frames: FrameService(FrameLog()) { _, _ in }, content: nil)

    static func check(_ input: FuzzInput) {
        var input = input
        let knowsToken = input.byte() & 1 == 0
        let pattern = input.byte()
        var bytes = Array(input.bytes)
        if knowsToken { bytes.replace(Array("TOKEN".utf8), with: Array(router.token.text.utf8)) }
        let whole = answer(to: [bytes])
        let split = answer(to: FuzzInput(bytes).pieces(pattern))
        require(whole == split, "\(whole) became \(split) in pieces of \(pattern)")
        guard !knowsToken else { return }
        let status = String(decoding: whole.output.prefix(12), as: UTF8.self)
        require(!status.hasSuffix(" 200") && whole.publications == 0, "an answer without the token: \(whole)")
    }

    private struct Answer: Equatable {
        var output: [UInt8]
        var isOver: Bool
        var publications: Int
    }

    private static func answer(to pieces: [[UInt8]]) -> Answer {
        var machine = PageMachine(router, LateReply(), PagePlaces(1).take()!)
        let afterLock = PageMachine.AfterLock()
        machine.connectionOpened(at: 0, into: afterLock)
        for piece in pieces where !machine.wantsClose {
            let consumed = machine.receive(piece.span.bytes, at: 1, into: afterLock)
            require(consumed == piece.count, "\(consumed) of \(piece.count) bytes were consumed")
        }
        let answer = Answer(
            output: machine.output, isOver: machine.wantsClose, publications: afterLock.publications.count)
        machine.connectionClosed(nil, at: 2, into: afterLock)
        return answer
    }
}

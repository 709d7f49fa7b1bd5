import TestSupport
import Testing

/// A program of `Examples/Cookbook`, which is a package of its own: `.ci/run cookbook` builds it and names the folder of
/// its programs as `COOKBOOK`.
enum CookbookProgram: String, CaseIterable {
    case publish, subscribe, bridge, chat
    case requestReply = "request-reply"
    case orderWorker = "order-worker"
    case vehiclePositions = "vehicle-positions"
    case smartHome = "smart-home"
    case viewModel = "view-model"

    static let folder = Campaign.environment("COOKBOOK")

    func start(_ arguments: [String], input: Command.Input = .null) async throws -> ChildProcess {
        try await ChildProcess.start(Command("\(Self.folder ?? "")/\(rawValue)", arguments, input: input))
    }

    /// Runs the program to its end, with `text` as its standard input.
    func run(
        _ arguments: [String], input text: String? = nil
    ) async throws -> (status: TestSupport.ExitStatus, output: [String], errors: [String]) {
        let process = try await start(arguments, input: text == nil ? .null : .pipe)
        if let text {
            try await process.write(text)
            process.closeInput()
        }
        let status = try await process.waitForEnd()
        return (status, process.lines(), process.lines(.errors))
    }
}

extension Trait where Self == ConditionTrait {
    static var requiresCookbook: ConditionTrait {
        .enabled(if: CookbookProgram.folder != nil, "COOKBOOK names no folder; run .ci/run cookbook")
    }
}

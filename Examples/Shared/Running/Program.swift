import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// What is the same in both mains: from the command line to the exit status.
package struct Program: Sendable {
    package let device: Device
    package let console: Console
    package let stop: StopSwitch

    /// Whether a recording starts over at its end: by `--loop`, and on a terminal with a page, which would otherwise
    /// disappear under its reader.
    package func startsOver(_ options: DeviceOptions) -> Bool {
        options.loops || console.isTerminal && options.hasPage && !options.runsOnce
    }

    /// Parses the command line, runs `body` until it returns or throws, and exits.
    ///
    /// - Parameters:
    ///   - parse: `LocationsOptions.parse` or `MotionsOptions.parse`.
    ///   - body: Ends on its own soon after `stop` was thrown; an error that is no `DeviceFailure` is a fault of ours.
    package static func run<Options: Sendable>(
        _ device: Device,
        _ parse: ([String], [String: String]) throws(DeviceFailure) -> Invocation<Options>,
        _ body: (Options, Program) async throws -> Void
    ) async -> Never {
        Signals.prepare()
        Descriptor.openMissing()
        let environment = ProcessInfo.processInfo.environment
        let stop = StopSwitch()
        let console = Console(environment: environment) { stop.stop(.output($0)) }
        let program = Program(device: device, console: console, stop: stop)
        var status = ExitStatus.success
        do {
            switch try parse(Array(CommandLine.arguments.dropFirst()), environment) {
            case .show(let text):
                console.text(text)
            case .run(let options):
                Signals.watch(first: { stop.stop(.signal($0)) }, last: { console.closeWithoutWaiting() })
                try await body(options, program)
            }
        } catch let failure as DeviceFailure {
            console.problem("\(device.programName): \(failure.message)")
            status = failure.status
        } catch {
            console.problem("\(device.programName): \(error)")
            status = .software
        }
        console.close()
        TerminalMode.restore()
        // A reader that has seen enough (head) is no failure; a full disk is.
        if case .output(let number) = stop.reason, number != EPIPE {
            console.problem("\(device.programName): cannot write standard output: \(systemMessage(number))")
            status = status == .success ? .outputError : status
        }
        exit(status.rawValue)
    }
}

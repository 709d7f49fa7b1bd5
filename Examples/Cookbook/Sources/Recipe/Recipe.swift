@preconcurrency import Foundation

/// Runs a program: reads its options, prints errors as a sentence, and ends it with 0, 1, or 64 for a wrong option.
///
/// Ctrl-C and SIGTERM cancel the body, so that clients disconnect gracefully; a second one ends the program at once.
///
/// - Parameter takesArguments: whether there is a use for arguments that belong to no option.
@MainActor public func recipe(
    _ usage: String, takesArguments: Bool = false, _ body: @escaping @MainActor (Options) async throws -> Void
) async {
    setvbuf(stdout, nil, _IOLBF, 0)
    do {
        let options = try Options(Array(CommandLine.arguments.dropFirst()), usage: usage)
        if options.has("--help") { return print(usage) }
        if !takesArguments, let argument = options.rest.first {
            throw UsageError("'\(argument)' belongs to no option. Quote a value that has blanks.")
        }
        let task = Task { try await body(options) }
        let signals = [SIGINT, SIGTERM].map { number in
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler {
                // exit() would wait for a reader of the output that has stopped reading.
                if task.isCancelled { _exit(128 + number) }
                task.cancel()
            }
            // Dispatch collects signals from a moment later on. The program dies of one before that, and loses none.
            let isCollecting = DispatchSemaphore(value: 0)
            source.setRegistrationHandler { isCollecting.signal() }
            source.activate()
            isCollecting.wait()
            #if canImport(Darwin)
                // Dispatch on Darwin sees it nevertheless.
                signal(number, SIG_IGN)
            #endif
            return source
        }
        defer { for source in signals { source.cancel() } }
        do {
            try await task.value
        } catch {
            guard task.isCancelled else { throw error }
        }
    } catch let error as UsageError {
        complain("\(error) --help lists the options.")
        exit(64)
    } catch {
        complain("\(error)")
        exit(1)
    }
}

/// Writes a line to standard error.
public func complain(_ line: String) {
    FileHandle.standardError.write(Data((line.printable + "\n").utf8))
}

extension String {
    /// The text with its control characters written as `\u{1B}`, so that what a stranger sends cannot move the cursor or
    /// pretend to be a line of this program.
    public var printable: String {
        unicodeScalars.map { scalar in
            switch scalar.value {
            // Controls, separators of lines and paragraphs, and marks that turn text around.
            case 0..<0x20, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069: "\\u{\(String(scalar.value, radix: 16))}"
            default: "\(scalar)"
            }
        }.joined()
    }
}

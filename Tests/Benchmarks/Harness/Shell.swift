import Foundation

/// Compiles and runs the C programs that the rows are measured against.
enum Shell {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static let directory: URL = {
        // The same after `Counters.startCounting()`.
        if let path = getenv("BENCHMARK_DIRECTORY") { return URL(fileURLWithPath: String(cString: path)) }
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("messaging-benchmarks-\(getpid())")
        try? FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }()

    static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("C")

    /// The first of these that is there; Swift's toolchain brings the second.
    private static let compiler: String = {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return ["cc", "clang", "gcc"].first { name in
            folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }
        } ?? "cc"
    }()

    /// Compiles `name.c` with a C compiler and returns the program's path.
    static func compile(_ name: String, options: [String] = []) throws -> String {
        let program = directory.appendingPathComponent(name).path
        if FileManager.default.fileExists(atPath: program) { return program }
        let source = sources.appendingPathComponent("\(name).c").path
        _ = try run("/usr/bin/env", [compiler, "-O2", "-o", program, source] + options)
        return program
    }

    /// Runs a program to its end and returns what it printed.
    ///
    /// - Throws: what it says of itself is on standard error; a program that takes longer than `timeLimit` is killed.
    static func run(
        _ program: String, _ arguments: [String], timeLimit: Duration = .seconds(180)
    ) throws -> String {
        try failing(program, arguments) {
            let (output, status) = try Child(program, arguments).waitForEnd(timeLimit: timeLimit)
            guard status == 0 else { throw Failure(description: "it ended with status \(status)") }
            return output
        }
    }

    /// Starts a program that runs until this one ends; returns the first line that it prints.
    static func serve(_ program: String, _ arguments: [String] = []) throws -> (Child, String) {
        try failing(program, arguments) {
            let child = try Child(program, arguments)
            guard let line = try child.firstLine(timeLimit: .seconds(30)) else {
                child.end()
                throw Failure(description: "it ended before it was ready")
            }
            return (child, line)
        }
    }

    private static func failing<Answer>(
        _ program: String, _ arguments: [String], _ body: () throws -> Answer
    ) throws -> Answer {
        do {
            return try body()
        } catch {
            let name = URL(fileURLWithPath: program).lastPathComponent
            throw Failure(description: "\(name) \(arguments.joined(separator: " ")): \(error)")
        }
    }
}

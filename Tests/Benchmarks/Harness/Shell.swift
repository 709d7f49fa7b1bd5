import Foundation

/// Compiles and runs the C programs that the rows are measured against.
enum Shell {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static let directory: URL = {
        // The same after `Allocations.startCounting()`.
        if let path = getenv("BENCHMARK_DIRECTORY") { return URL(fileURLWithPath: String(cString: path)) }
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("messaging-benchmarks-\(getpid())")
        try? FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }()

    static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("C")

    /// Compiles `name.c` with the system's C compiler and returns the program's path.
    static func compile(_ name: String, options: [String] = []) throws -> String {
        let program = directory.appendingPathComponent(name).path
        if FileManager.default.fileExists(atPath: program) { return program }
        let source = sources.appendingPathComponent("\(name).c").path
        _ = try run("/usr/bin/env", ["cc", "-O2", "-o", program, source] + options)
        return program
    }

    /// Runs a program to its end and returns what it printed.
    static func run(_ program: String, _ arguments: [String]) throws -> String {
        let (process, output) = try launch(program, arguments)
        let data = output.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(description: "\(program) \(arguments.joined(separator: " ")) failed")
        }
        return String(decoding: data, as: UTF8.self)
    }

    /// Starts a program that runs until this one ends; returns the first line that it prints.
    static func serve(_ program: String, _ arguments: [String] = []) throws -> (Process, String) {
        let (process, output) = try launch(program, arguments)
        var line = ""
        while let byte = try output.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") {
            line.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return (process, line)
    }

    private static func launch(_ program: String, _ arguments: [String]) throws -> (Process, FileHandle) {
        let process = Process()
        var environment = ProcessInfo.processInfo.environment
        environment["LD_PRELOAD"] = nil
        process.environment = environment
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        return (process, pipe.fileHandleForReading)
    }
}

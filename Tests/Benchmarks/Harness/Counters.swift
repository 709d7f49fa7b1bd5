import Foundation

/// Counts this program's allocations, and its system calls for sockets, by a small library in C, which has to be there
/// before the program starts.
enum Counters {
    /// How many allocations there were so far; 0 where they are not counted.
    static var allocations: Int { Int(allocationCounter?() ?? 0) }
    /// How many system calls there were so far; 0 where they are not counted.
    static var systemCalls: Int { Int(systemCallCounter?() ?? 0) }

    static var areCounting: Bool { allocationCounter != nil }

    private static let allocationCounter = counter("allocation_count")
    private static let systemCallCounter = counter("system_call_count")

    private static func counter(_ name: String) -> (@convention(c) () -> UInt)? {
        guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), name) else { return nil }
        return unsafeBitCast(symbol, to: (@convention(c) () -> UInt).self)
    }

    /// Starts the program anew with the library in front of everything else. Returns only where that cannot be.
    static func startCounting() {
        #if os(Linux)
            guard !areCounting, getenv("BENCHMARK_IS_COUNTING") == nil,
                let library = try? Shell.compile("count_calls", options: ["-shared", "-fPIC"])
            else { return }
            setenv("LD_PRELOAD", library, 1)
            setenv("BENCHMARK_IS_COUNTING", "1", 1)
            setenv("BENCHMARK_DIRECTORY", Shell.directory.path, 1)
            let arguments = CommandLine.arguments.map { strdup($0) } + [nil]
            execv("/proc/self/exe", arguments)
            unsetenv("LD_PRELOAD")
        #endif
    }
}

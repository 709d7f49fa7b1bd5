import Foundation

/// Counts this program's allocations by a small library in C, which has to be there before the program starts.
enum Allocations {
    /// How many there were so far; 0 where they are not counted.
    static var count: Int { Int(counter?() ?? 0) }

    static var areCounted: Bool { counter != nil }

    private static let counter: (@convention(c) () -> UInt)? = {
        guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "allocation_count") else { return nil }
        return unsafeBitCast(symbol, to: (@convention(c) () -> UInt).self)
    }()

    /// Starts the program anew with the library in front of everything else. Returns only where that cannot be.
    static func startCounting() {
        #if os(Linux)
            guard !areCounted, getenv("BENCHMARK_IS_COUNTING") == nil,
                let library = try? Shell.compile("count_allocations", options: ["-shared", "-fPIC"])
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

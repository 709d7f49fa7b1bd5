import Foundation

/// The descriptors that this process may have.
enum Descriptors {
    /// Allows as many as the system lets us; returns how many.
    @discardableResult
    static func raise() -> Int {
        #if canImport(Darwin)
            let files = RLIMIT_NOFILE
        #else
            let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #endif
        var limit = rlimit()
        getrlimit(files, &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(files, &limit)
        getrlimit(files, &limit)
        return Int(clamping: limit.rlim_cur)
    }
}

/// Ports of this machine.
enum Ports {
    /// One that is free at the moment.
    static func free() -> UInt16 {
        #if canImport(Darwin)
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                guard bind(descriptor, $0, size) == 0, getsockname(descriptor, $0, &size) == 0 else { return }
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
    }
}

/// The memory of this process.
enum Memory {
    /// Gives back what was freed, where the C library has a call for it, which the Glibc module leaves out.
    static func trim() {
        guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "malloc_trim") else { return }
        _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)(0)
    }

    /// What is allocated at the moment, in bytes, with what the C library adds to each block; nil where it does not tell.
    static var allocated: Int? {
        guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "malloc_info"), let file = tmpfile() else {
            return nil
        }
        defer { fclose(file) }
        typealias Describe = @convention(c) (Int32, UnsafeMutablePointer<FILE>) -> Int32
        guard unsafeBitCast(symbol, to: Describe.self)(0, file) == 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: ftell(file))
        rewind(file)
        guard fread(&bytes, 1, bytes.count, file) == bytes.count else { return nil }
        // The sums over all arenas come last.
        func sum(_ element: String) -> Int? {
            let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").last {
                $0.hasPrefix("<\(element)")
            }
            return line?.components(separatedBy: "size=\"").last?.split(separator: "\"").first.flatMap { Int($0) }
        }
        guard let system = sum("system type=\"current\""), let fast = sum("total type=\"fast\""),
            let free = sum("total type=\"rest\""), let mapped = sum("total type=\"mmap\"")
        else { return nil }
        return system - fast - free + mapped
    }

    /// What is in the machine's memory, in bytes.
    static var resident: Int {
        let words = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ") ?? []
        return words.count > 1 ? (Int(words[1]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE))) : 0
    }

    /// The most that was there since `forgetPeak()`, in bytes; 0 where the system does not tell.
    static var peak: Int {
        let lines = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8))?.split(separator: "\n") ?? []
        let words = lines.first { $0.hasPrefix("VmHWM:") }?.split(whereSeparator: \.isWhitespace) ?? []
        return words.count > 1 ? (Int(words[1]) ?? 0) * 1024 : 0
    }

    /// Begins to look for the peak anew.
    static func forgetPeak() {
        // Linux takes 5 as: the peak is what there is now.
        guard let file = fopen("/proc/self/clear_refs", "w") else { return }
        fputs("5", file)
        fclose(file)
    }
}

/// The threads of this process.
enum Threads {
    struct Thread {
        let name: String
        /// How often it has waited so far.
        let waits: Int
    }

    static var all: [Thread] {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return numbers.compactMap { number in
            let path = "/proc/self/task/\(number)/"
            guard let name = try? String(contentsOfFile: path + "comm", encoding: .utf8),
                let status = try? String(contentsOfFile: path + "status", encoding: .utf8)
            else { return nil }
            let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches") }
            let waits = line.flatMap { Int($0.split(whereSeparator: \.isWhitespace).last ?? "") } ?? 0
            return Thread(name: name.trimmingCharacters(in: .whitespacesAndNewlines), waits: waits)
        }
    }

    /// How often all threads have waited so far.
    static var waits: Int { all.map(\.waits).reduce(0, +) }

    /// Those that serve connections.
    static var loops: [Thread] { all.filter { $0.name == "messaging-loop" } }
}

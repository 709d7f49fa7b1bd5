#if os(Linux)
    import Foundation

    extension ChildProcess {
        /// Whether the program catches or ignores a signal by now.
        public func minds(_ signal: Int32) -> Bool {
            let status = (try? String(contentsOfFile: "/proc/\(processID)/status", encoding: .utf8)) ?? ""
            return status.split(separator: "\n").contains { line in
                guard line.hasPrefix("SigIgn:") || line.hasPrefix("SigCgt:") else { return false }
                let set = UInt64(line.dropFirst(7).filter { !$0.isWhitespace }, radix: 16) ?? 0
                return set & (1 << UInt64(signal - 1)) != 0
            }
        }
    }
#endif

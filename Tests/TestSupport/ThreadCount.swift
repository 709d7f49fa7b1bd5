#if os(Linux)
    import Foundation

    /// The threads of this process.
    public enum ThreadCount {
        /// How many have this name, of which the system keeps 15 bytes.
        public static func named(_ name: String) -> Int {
            let folder = "/proc/self/task"
            let threads = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return threads.count { thread in
                (try? String(contentsOfFile: "\(folder)/\(thread)/comm", encoding: .utf8)) == "\(name)\n"
            }
        }
    }
#endif

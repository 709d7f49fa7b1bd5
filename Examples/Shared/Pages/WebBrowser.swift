import Foundation

/// The browser of the user who started the program.
enum WebBrowser {
    #if canImport(Darwin) && !os(macOS)
        /// - Returns: A line for the user: an app cannot start another program here.
        static func open(_ address: String) -> String? {
            "cannot open a browser on this system; open \(address) yourself"
        }
    #else
        #if canImport(Darwin)
            private static let opener = "open"
        #else
            private static let opener = "xdg-open"
        #endif

        /// Opens a page.
        ///
        /// - Returns: A line for the user if that cannot be done.
        static func open(_ address: String) -> String? {
            let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
            guard let path = folders.map({ "\($0)/\(opener)" }).first(where: FileManager.default.isExecutableFile)
            else {
                return "cannot open a browser: \(opener) is not installed; open \(address) yourself"
            }
            let process = Process()
            process.executableURL = URL(fileURLWithPath: path)
            process.arguments = [address]
            // The terminal is the program's own.
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            do {
                try process.run()
                return nil
            } catch {
                return "cannot open a browser: \(error.localizedDescription); open \(address) yourself"
            }
        }
    #endif
}

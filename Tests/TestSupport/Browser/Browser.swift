import Foundation
import Synchronization
public import Testing

/// A headless Chromium, driven over the DevTools protocol.
///
/// Chromium speaks the protocol on two inherited descriptors (`--remote-debugging-pipe`), with a NUL after each JSON
/// message. A shell gives it our pipes as those descriptors and `tr` turns the NULs into line ends, so that what it
/// says are the lines of an ordinary child process. When our end of the pipe closes, however we die, Chromium ends.
public final class Browser: Sendable {
    private struct Progress {
        var lastID = 0
        /// Where the latest answer was found; the answer to a command that is sent now comes later.
        var lastLine: ChildProcess.Line?
    }

    private let child: ChildProcess
    private let profile: ScratchDirectory
    private let progress = Mutex(Progress())
    /// Lets one command after the other into the pipe, which takes a long one in parts.
    private let writing = Permits(1)

    /// The name of the program; nil when none is installed.
    public static var program: String? {
        ["chromium", "chromium-browser", "google-chrome"].first { Command.path(of: $0) != nil }
    }

    /// Starts a browser with a profile of its own; it ends with its last reference.
    public static func start() async throws -> Browser {
        guard let program else {
            throw MissingRequirement(description: "Chromium is not installed (apt-get install chromium)")
        }
        let profile = try ScratchDirectory("browser")
        let script = #""$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1 | stdbuf -oL tr '\0' '\n'"#
        var command = Command(
            "sh",
            [
                "-c", script, program, "--headless=new", "--remote-debugging-pipe", "--user-data-dir=\(profile.path)",
                "--no-first-run", "--no-default-browser-check", "--disable-extensions", "--disable-breakpad",
                "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
                "--disable-gpu", "--hide-scrollbars", "--enable-precise-memory-info",
            ] + (geteuid() == 0 ? ["--no-sandbox"] : []),
            // Some of what starts there looks for a home to write to.
            environment: ["HOME": profile.path])
        command.input = .pipe
        command.outputLimit = 16 << 20
        return try await Turn.lend {
            try await Permits.starts.hold {
                let browser = Browser(try await ChildProcess.start(command), profile)
                // The first answer comes when it has started.
                _ = try await browser.call("Browser.getVersion", [:])
                return browser
            }
        }
    }

    private init(_ child: ChildProcess, _ profile: ScratchDirectory) {
        self.child = child
        self.profile = profile
    }

    /// Opens a page in a tab of its own, which shares nothing with the others.
    public func open(_ url: String, width: Int = 1280, height: Int = 800) async throws -> BrowserTab {
        let context = try await call("Target.createBrowserContext", [:])["browserContextId"] as? String ?? ""
        let target = try await call("Target.createTarget", ["url": "about:blank", "browserContextId": context])
        let attached = try await call(
            "Target.attachToTarget", ["targetId": target["targetId"] as? String ?? "", "flatten": true])
        guard let session = attached["sessionId"] as? String else { throw BrowserError("no session for a new tab") }
        let tab = BrowserTab(self, session: session)
        try await tab.prepare(width: width, height: height)
        try await tab.navigate(to: url)
        return tab
    }

    /// Ends the browser, and waits for it.
    public func close() async {
        _ = try? await send("Browser.close", [:], session: nil)
        await child.stop()
    }

    /// Sends a command and waits for its answer.
    func call(
        _ method: String, _ parameters: [String: Any], session: String? = nil, timeout: Duration = .patience
    ) async throws -> [String: Any] {
        // Read before the command is sent: the call of another tab may find its answer behind the answer to this one.
        let before = progress.withLock { $0.lastLine }
        let id = try await send(method, parameters, session: session)
        let line = try await child.waitForLine(containing: #"{"id":\#(id),"#, after: before, timeout: timeout)
        progress.withLock { $0.lastLine = line }
        let answer = try JSONSerialization.jsonObject(with: Data(line.text.utf8)) as? [String: Any] ?? [:]
        if let error = answer["error"] as? [String: Any] {
            throw BrowserError("\(method): \(error["message"] ?? error)")
        }
        return answer["result"] as? [String: Any] ?? [:]
    }

    /// Sends a command and does not wait.
    @discardableResult
    func send(_ method: String, _ parameters: [String: Any], session: String?) async throws -> Int {
        let id = progress.withLock { progress in
            progress.lastID += 1
            return progress.lastID
        }
        var message: [String: Any] = ["id": id, "method": method, "params": parameters]
        message["sessionId"] = session
        let bytes = Array(try JSONSerialization.data(withJSONObject: message))
        try await writing.hold { try await child.write(bytes + [0]) }
        return id
    }

    /// The events of a tab whose method is one of these.
    func events(_ methods: Set<String>, session: String) -> [String] {
        child.lines().filter { line in
            line.contains(session) && methods.contains { line.hasPrefix(#"{"method":"\#($0)""#) }
        }
    }
}

/// Something in the browser went wrong.
public struct BrowserError: Error, CustomStringConvertible, Sendable {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

extension Trait where Self == ConditionTrait {
    /// Disables a test or suite where no Chromium is installed; under `REQUIRE_BROKERS=1` it fails there instead.
    public static var requiresBrowser: ConditionTrait { .requires(program: Browser.program ?? "chromium") }
}

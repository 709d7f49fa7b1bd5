import Foundation

/// One page in a browser.
public final class BrowserTab: Sendable {
    private let browser: Browser
    private let session: String

    init(_ browser: Browser, session: String) {
        self.browser = browser
        self.session = session
    }

    func prepare(width: Int, height: Int) async throws {
        try await call("Runtime.enable")
        try await call("Log.enable")
        try await resize(width: width, height: height)
    }

    /// Loads another page and waits until its scripts have run.
    public func navigate(to url: String) async throws {
        // Commands may still reach the page that is being left, which is complete, or end with it.
        try await evaluate("window.isBeingLeft = true")
        let result = try await call("Page.navigate", ["url": url])
        if let problem = result["errorText"] as? String { throw BrowserError("\(url): \(problem)") }
        let isLoaded = await eventually(every: .milliseconds(30)) {
            let state = try? await evaluate("String(!window.isBeingLeft && document.readyState === 'complete')")
            return state == "true" || Task.isCancelled
        }
        try Task.checkCancellation()
        if !isLoaded { throw TimeoutError("\(url) was not loaded; \(problems)") }
    }

    /// The size of the window; a phone has two pixels for one.
    public func resize(width: Int, height: Int, isPhone: Bool = false) async throws {
        try await call(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": isPhone ? 2 : 1, "mobile": isPhone])
    }

    /// What the page is told about the user's wish for dark colours.
    public func setDark(_ isDark: Bool) async throws {
        let feature = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
        try await call("Emulation.setEmulatedMedia", ["features": [feature]])
    }

    /// What the page is told about the user's wish for little motion; replaces ``setDark(_:)``.
    public func setReducedMotion(_ isReduced: Bool) async throws {
        let feature = ["name": "prefers-reduced-motion", "value": isReduced ? "reduce" : "no-preference"]
        try await call("Emulation.setEmulatedMedia", ["features": [feature]])
    }

    // MARK: JavaScript

    /// The value of an expression, or of the promise that it is, as text.
    @discardableResult
    public func evaluate(_ expression: String, timeout: Duration = .patience) async throws -> String {
        let answer = try await call(
            "Runtime.evaluate",
            ["expression": "(async () => String(await (\(expression))))()", "awaitPromise": true], timeout: timeout)
        if let details = answer["exceptionDetails"] as? [String: Any] {
            let exception = details["exception"] as? [String: Any]
            throw BrowserError("\(expression): \(exception?["description"] ?? details["text"] ?? "")")
        }
        return (answer["result"] as? [String: Any])?["value"] as? String ?? ""
    }

    /// The value of an expression as a number; not-a-number when it is none.
    public func number(_ expression: String) async throws -> Double {
        Double(try await evaluate(expression)) ?? .nan
    }

    /// The value of an expression; nil if the page was left before it was known.
    private func evaluateUnlessLeft(_ expression: String) async throws -> String? {
        do {
            return try await evaluate(expression)
        } catch let error as BrowserError where error.description.hasSuffix("Inspected target navigated or closed") {
            return nil
        }
    }

    /// Waits until an expression is truthy, on this page or on the one that a link leads to.
    ///
    /// - Throws: `TimeoutError`, with what the page shows then.
    public func wait(until expression: String, timeout: Duration = .patience) async throws {
        let holds = try await eventually(timeout: timeout, every: .milliseconds(30)) {
            try Task.checkCancellation()
            return try await evaluateUnlessLeft("Boolean(\(expression))") == "true"
        }
        if holds { return }
        let text = try await evaluate("document.body.innerText.slice(0, 2000)")
        throw TimeoutError("\(expression) did not hold within \(timeout); the page shows:\n\(text)\n\(problems)")
    }

    // MARK: What a user does and sees

    /// The text of the first element that a selector finds.
    public func text(of selector: String) async throws -> String {
        try await evaluate("document.querySelector(\(Self.quoted(selector))).textContent")
    }

    /// Replaces the content of a field.
    public func fill(_ selector: String, _ text: String) async throws {
        try await evaluate(
            """
            ((field) => {
                field.value = \(Self.quoted(text));
                field.dispatchEvent(new Event('input', { bubbles: true }));
                field.dispatchEvent(new Event('change', { bubbles: true }));
            })(document.querySelector(\(Self.quoted(selector))))
            """)
    }

    /// Clicks in the middle of the first element that a selector finds, as a mouse does; a disabled button does nothing.
    ///
    /// Waits until the element can be seen and nothing lies above it, and clicks again when it has moved away before the
    /// click arrived, as on a page to which rows are being added.
    public func click(_ selector: String) async throws {
        let selector = Self.quoted(selector)
        let isClicked = try await eventually(every: .milliseconds(30)) {
            try Task.checkCancellation()
            let place = try await evaluate(
                """
                ((element) => {
                    element?.scrollIntoView({ block: 'nearest' });
                    const box = element?.getBoundingClientRect();
                    const [x, y] = box ? [box.x + box.width / 2, box.y + box.height / 2] : [-1, -1];
                    if (!document.elementFromPoint(x, y)?.closest(\(selector))) return '';
                    window.lastClick = element.disabled ? 'ignored' : '';
                    document.addEventListener('click', ({ target }) => {
                        window.lastClick = target.closest(\(selector)) ? 'arrived' : 'missed';
                    }, { capture: true, once: true });
                    return `${x} ${y}`;
                })(document.querySelector(\(selector)))
                """)
            let numbers = place.split(separator: " ").compactMap { Double($0) }
            guard numbers.count == 2 else { return false }
            for type in ["mouseMoved", "mousePressed", "mouseReleased"] {
                try await call(
                    "Input.dispatchMouseEvent",
                    ["type": type, "x": numbers[0], "y": numbers[1], "button": "left", "clickCount": 1])
            }
            // A click that leads to another page leaves nothing behind.
            guard let answer = try await evaluateUnlessLeft("window.lastClick") else { return true }
            return !["", "missed"].contains(answer)
        }
        if !isClicked { throw TimeoutError("no click reached \(selector); \(problems)") }
    }

    /// Writes a picture of the page as PNG.
    public func screenshot(to path: String) async throws {
        let answer = try await call("Page.captureScreenshot", ["format": "png"])
        guard let text = answer["data"] as? String, let data = Data(base64Encoded: text) else {
            throw BrowserError("no picture")
        }
        try data.write(to: URL(fileURLWithPath: path))
    }

    /// Uncaught exceptions and what the browser complained about so far.
    public var problems: [String] {
        browser.events(["Runtime.exceptionThrown", "Log.entryAdded"], session: session)
            // A broker that is away is what some tests are about.
            .filter { !$0.contains("WebSocket connection to") }
    }

    /// How many seconds the processor has worked for the page's main thread, which other programs do not lengthen.
    public func processorTime() async throws -> Double {
        try await call("Performance.enable", ["timeDomain": "threadTicks"])
        let metrics = try await call("Performance.getMetrics")["metrics"] as? [[String: Any]] ?? []
        return metrics.first { $0["name"] as? String == "TaskDuration" }?["value"] as? Double ?? .nan
    }

    /// The processor time, in seconds, of a computation that is always the same.
    public func referenceTime() async throws -> Double {
        let before = try await processorTime()
        try await evaluate(
            "(() => { let x = 1; for (let i = 0; i < 1e8; i++) x = (x * 31 + i) % 1000003; return x; })()")
        return try await processorTime() - before
    }

    /// The memory of JavaScript in bytes, without what is garbage by now.
    public func heapSize() async throws -> Double {
        try await call("HeapProfiler.collectGarbage")
        return try await number("performance.memory.usedJSHeapSize")
    }

    /// Kills the process behind the page, as the system does with one that needs too much memory.
    public func crash() async throws {
        try await browser.send("Page.crash", [:], session: session)
    }

    @discardableResult
    private func call(
        _ method: String, _ parameters: [String: Any] = [:], timeout: Duration = .patience
    ) async throws -> [String: Any] {
        try await browser.call(method, parameters, session: session, timeout: timeout)
    }

    /// A text as a literal of JavaScript.
    public static func quoted(_ text: String) -> String {
        let data = try? JSONSerialization.data(withJSONObject: text, options: .fragmentsAllowed)
        return String(decoding: data ?? Data("\"\"".utf8), as: UTF8.self)
    }
}

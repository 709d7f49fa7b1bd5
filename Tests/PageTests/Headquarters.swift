import Foundation
import Inspector
import MessagingDeviceSupport
import TestSupport
import Testing

/// A headquarters page in a real browser, as a device serves it.
struct Headquarters {
    let tab: BrowserTab
    private let server: PageServer

    /// Opens a page that connects to `url` by itself, or with an empty one to nothing.
    static func open(_ page: Device, _ url: String, in browser: Browser? = nil) async throws -> Headquarters {
        let server = try await PageServer.start(PageSite(first: page, brokers: url.isEmpty ? [:] : [page: url]))
        let chosen: Browser = if let browser { browser } else { try await SharedBrokers.browser() }
        return Headquarters(tab: try await chosen.open(server.address), server: server)
    }

    /// The page closes with its server.
    func close() async throws {
        try await tab.navigate(to: "data:text/html,gone")
        await server.stop()
    }

    func waitForState(_ state: String, timeout: Duration = .patience) async throws {
        try await tab.wait(until: "document.documentElement.dataset.state === '\(state)'", timeout: timeout)
    }

    /// Waits until the broker has granted the page's subscriptions: connected is not yet subscribed, and what is published
    /// in between never arrives.
    func waitForSubscription(timeout: Duration = .patience) async throws {
        try await tab.wait(until: "document.documentElement.dataset.subscribed", timeout: timeout)
    }

    func connect(user: String, password: String) async throws {
        try await tab.fill("#user", user)
        try await tab.fill("#password", password)
        try await tab.click("#connect")
    }

    /// How long fleets are watched: `PAGE_FLEET_SECONDS`, 600 for the long run.
    static var fleetSeconds: Int { Campaign.environment("PAGE_FLEET_SECONDS").flatMap { Int($0) } ?? 4 }

    /// Whether the environment asks for more than a short look.
    static var watchesLong: Bool { Campaign.environment("PAGE_FLEET_SECONDS") != nil }

    /// Watches how much the page works, the frames that it draws and the memory that it takes, while it handles messages.
    ///
    /// The bound is the processor time of a fixed computation, measured in the same page, so that it does not depend on the
    /// machine or on what else that does: for 2,000 messages a page with two hundred devices works for a quarter of that, and
    /// one that needs much more falls behind.
    ///
    /// - Parameter handle: has the page handle messages, and returns their number when it has.
    func expectUsable(while handle: () async throws -> Int) async throws {
        let heap = try await tab.heapSize()
        let before = try await tab.processorTime()
        try await tab.evaluate(
            """
            (() => {
                window.worstGap = 0; let last = performance.now();
                (function frame(now) {
                    window.worstGap = Math.max(window.worstGap, now - last); last = now;
                    requestAnimationFrame(frame);
                })(last);
            })()
            """)
        let clock = ContinuousClock()
        let start = clock.now
        let messages = try await handle()
        let seconds = Double((clock.now - start).components.seconds)
        let busy = try await tab.processorTime() - before
        let reference = try await tab.referenceTime()
        // On a busy machine the same messages take longer, and meanwhile the page draws more frames.
        #expect(
            busy < reference * max(Double(messages) / 2000, seconds),
            """
            for \(messages) messages in \(seconds) s the page has worked for \(busy) s; the fixed computation takes \
            \(reference) s
            """)
        // Gaps between frames depend on what else the machine does: the long run has it alone.
        if Self.fleetSeconds >= 600 {
            let worst = try await tab.number("worstGap")
            #expect(worst < 2000, "the longest gap between two frames, in milliseconds")
        }
        let growth = try await tab.heapSize() - heap
        #expect(growth < 20_000_000, "bytes of JavaScript's memory")
    }

    /// Takes pictures into the folder that the environment names as `SCREENSHOTS`.
    func picture(_ name: String) async throws {
        try await Pictures.take(name, of: tab)
    }
}

extension BrowserTab {
    /// Collects what the page reports from now on in `notices`.
    func collectNotices() async throws {
        try await evaluate(
            """
            (() => {
                window.notices = [];
                new MutationObserver((records) => {
                    for (const { addedNodes } of records) for (const node of addedNodes) notices.push(node.textContent);
                }).observe(document.getElementById('notices'), { childList: true });
            })()
            """)
    }

    /// Waits until an element has been at the same place for half a second of frames.
    func waitForRest(of selector: String) async throws {
        try await evaluate(
            """
            new Promise((done) => {
                let last = '', frames = 0, since = 0;
                (function frame(now) {
                    const box = document.querySelector(\(Self.quoted(selector))).getBoundingClientRect();
                    const place = `${box.x} ${box.y}`;
                    if (place !== last) { last = place; frames = 0; since = now; }
                    frames += 1;
                    if (frames > 10 && now - since > 500) done(); else requestAnimationFrame(frame);
                })(performance.now());
            })
            """)
    }
}

import TestSupport

/// How well the texts of a page can be read.
enum Contrast {
    /// The texts of a page that are too faint, in light and in dark colours.
    static func faintTexts(in tab: BrowserTab) async throws -> [String] {
        var found: [String] = []
        for isDark in [false, true] {
            try await tab.setDark(isDark)
            let texts = try await tab.evaluate(script)
            if !texts.isEmpty { found.append("\(isDark ? "dark" : "light"): \(texts)") }
        }
        try await tab.setDark(false)
        return found
    }

    /// The texts whose contrast with what is behind them is below 4.5 to 1, with that contrast (WCAG 2.2, 1.4.3);
    /// controls that are disabled are exempt.
    private static let script = """
        (() => {
            const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
            const rgba = (colour) => {
                canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
                return [...canvas.getImageData(0, 0, 1, 1).data];
            };
            const over = ([r, g, b, a], below) => [r, g, b].map((c, i) => c * a / 255 + below[i] * (1 - a / 255));
            const back = (element) => {
                const colour = rgba(getComputedStyle(element).backgroundColor);
                return colour[3] === 255 ? colour.slice(0, 3)
                    : over(colour, element.parentElement ? back(element.parentElement) : [255, 255, 255]);
            };
            const light = (colour) => {
                const [r, g, b] = colour.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const found = new Set();
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            for (let node = walker.nextNode(); node; node = walker.nextNode()) {
                const element = node.parentElement;
                if (node.data.trim() === '' || element.closest(':disabled, script, noscript, template, option')) continue;
                if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
                const behind = back(element);
                const front = over(rgba(getComputedStyle(element).color), behind);
                const [low, high] = [light(front), light(behind)].sort((a, b) => a - b);
                const contrast = (high + 0.05) / (low + 0.05);
                if (contrast < 4.5) found.add(`${node.data.trim().slice(0, 30)}: ${contrast.toFixed(2)}`);
            }
            return [...found].join(', ');
        })()
        """
}

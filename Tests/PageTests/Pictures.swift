import Foundation
import TestSupport
import Testing

/// Pictures of the pages: for the README when `WRITE_SCREENSHOTS=1`, otherwise only to be looked at.
enum Pictures {
    /// What a program that decodes it says of a picture.
    struct Look: Equatable {
        var width: Int
        var height: Int
        var colours: Int
    }

    static let isWriting = Campaign.environment("WRITE_SCREENSHOTS") == "1"

    /// Where the pictures of this run go.
    static func folder(_ scratch: ScratchDirectory) -> String {
        guard isWriting else { return scratch.path }
        return URL(fileURLWithPath: #filePath).appending(path: "../../../Examples/Pages/Screenshots").standardized.path
    }

    /// The page as a large window and as a phone show it, light and dark, in files that end in `-dark`, `-phone` and
    /// `-phone-dark`.
    ///
    /// Taken when the environment names a folder as `SCREENSHOTS`, to be looked at by people. The page is left large and
    /// light.
    static func take(_ name: String, of tab: BrowserTab) async throws {
        guard let folder = Campaign.environment("SCREENSHOTS") else { return }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for (width, height) in [(1280, 800), (390, 844)] {
            let isPhone = width < 1000
            try await tab.resize(width: width, height: height, isPhone: isPhone)
            for isDark in [false, true] {
                try await tab.setDark(isDark)
                // A map takes half a second to find its view.
                try await tab.evaluate("new Promise((done) => setTimeout(done, 800))")
                #expect(try await tab.evaluate("document.documentElement.scrollWidth <= innerWidth") == "true")
                let end = (isPhone ? "-phone" : "") + (isDark ? "-dark" : "")
                try await tab.screenshot(to: "\(folder)/\(name)\(end).png")
            }
        }
        try await tab.setDark(false)
        try await tab.resize(width: 1280, height: 800)
    }

    /// Decodes a picture in the browser, which knows PNG, and counts its colours.
    static func look(at path: String, in tab: BrowserTab) async throws -> Look {
        let text = try Data(contentsOf: URL(fileURLWithPath: path)).base64EncodedString()
        let answer = try await tab.evaluate(
            """
            (async () => {
                const image = new Image();
                image.src = 'data:image/png;base64,\(text)';
                await image.decode();
                const canvas = new OffscreenCanvas(image.width, image.height);
                const context = canvas.getContext('2d');
                context.drawImage(image, 0, 0);
                const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
                return `${image.width} ${image.height} ${new Set(pixels).size}`;
            })()
            """)
        let numbers = answer.split(separator: " ").compactMap { Int($0) }
        return Look(width: numbers[0], height: numbers[1], colours: numbers[2])
    }
}

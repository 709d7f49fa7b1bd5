import Foundation

/// A program of this package as it was built beside the tests.
public enum BuiltProgram {
    private static let directory: URL = {
        let tests = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        if CommandLine.arguments[0].hasSuffix(".xctest") { return tests }
        // Started by a helper of the toolchain: the products are where the bundle is.
        #if canImport(Darwin)
            for bundle in Bundle.allBundles where bundle.bundlePath.hasSuffix(".xctest") {
                return bundle.bundleURL.deletingLastPathComponent()
            }
        #endif
        guard let bundle = CommandLine.arguments.first(where: { $0.hasSuffix(".xctest") }) else { return tests }
        return URL(fileURLWithPath: bundle).deletingLastPathComponent()
    }()

    /// The path of the program with this name.
    public static func path(_ name: String) -> String { directory.appendingPathComponent(name).path }
}

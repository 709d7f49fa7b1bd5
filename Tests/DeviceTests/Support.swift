import Foundation
import Testing

@testable import MessagingDeviceSupport

/// A recording beside this file.
func recordingPath(_ name: String, file: StaticString = #filePath) -> String {
    URL(fileURLWithPath: "\(file)").deletingLastPathComponent().appending(path: "Recordings/\(name)").path
}

/// Writes `text` to a file of its own for the time of `body`.
func withFile<Result>(_ text: String, _ body: (String) throws -> Result) throws -> Result {
    try withFile(bytes: Array(text.utf8), body)
}

func withFile<Result>(bytes: [UInt8], _ body: (String) throws -> Result) throws -> Result {
    let url = FileManager.default.temporaryDirectory.appending(path: "device-tests-\(UUID().uuidString)")
    try Data(bytes).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    return try body(url.path)
}

/// The failure that `body` throws; anything else is an issue.
func failure(
    _ body: () throws -> some Any, sourceLocation: SourceLocation = #_sourceLocation
) -> DeviceFailure? {
    do {
        let value = try body()
        Issue.record("no failure but \(value)", sourceLocation: sourceLocation)
    } catch let failure as DeviceFailure {
        return failure
    } catch {
        Issue.record(error, sourceLocation: sourceLocation)
    }
    return nil
}

import Foundation
import TestSupport

/// Files of the repository.
enum Repository {
    static func path(_ name: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../" + name)
            .standardizedFileURL.path
    }
}

/// Programs that the examples' own scripts build, once for all tests.
enum EmbeddedProgram {
    private static let builtSensor = Task { try await build("Examples/Embedded/build") }
    private static let builtPage = Task { try await build("Examples/Browser/build") }

    private static func build(_ script: String) async throws -> ScratchDirectory {
        let folder = try ScratchDirectory("embedded")
        try await Tool.run(Repository.path(script), [folder.path], timeout: .seconds(3_600)).requireSuccess()
        return folder
    }

    /// The path of the sensor's image.
    static func sensor() async throws -> String { try await builtSensor.value.file("sensor.elf") }

    /// The folder of the page.
    static func page() async throws -> String { try await builtPage.value.path }
}

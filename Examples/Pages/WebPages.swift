/// The headquarters pages: the files in `Files`, built into the program so that a moved binary still has them.
package enum WebPages {
    package struct File: Sendable {
        package let contentType: String
        package let bytes: [UInt8]
    }

    /// The names of all files.
    package static var names: [String] { files.map(\.name) }

    /// The file of that name, without a slash; nil for every other name.
    package static func file(_ name: String) -> File? {
        guard let (_, bytes) = files.first(where: { $0.name == name }) else { return nil }
        let contentType =
            switch name.split(separator: ".").last {
            case "html": "text/html; charset=utf-8"
            case "css": "text/css; charset=utf-8"
            default: "text/javascript; charset=utf-8"
            }
        return File(contentType: contentType, bytes: bytes)
    }

    private static let files: [(name: String, bytes: [UInt8])] = [
        ("locations.html", PackageResources.locations_html), ("motions.html", PackageResources.motions_html),
        ("colours.css", PackageResources.colours_css), ("style.css", PackageResources.style_css),
        ("stomp.js", PackageResources.stomp_js),
        ("mqtt.js", PackageResources.mqtt_js), ("session.js", PackageResources.session_js),
        ("frames.js", PackageResources.frames_js), ("panel.js", PackageResources.panel_js),
        ("fleet.js", PackageResources.fleet_js), ("map.js", PackageResources.map_js),
        ("sparkline.js", PackageResources.sparkline_js),
        ("locations.js", PackageResources.locations_js), ("motions.js", PackageResources.motions_js),
    ]
}

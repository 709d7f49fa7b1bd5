/// The text of `--help`, made from the declarations alone.
package enum HelpText {
    package static func text(for device: Device, width: Int = 100) -> String {
        let options = OptionDeclaration.all(of: device)
        let left = options.map { $0.name + ($0.value.map { " " + $0 } ?? "") }
        let column = (left.map(\.count).max() ?? 0) + 4
        var lines = ["Usage: \(device.programName) [options]", "", device.purpose, "", "Options:"]
        for (option, left) in zip(options, left) {
            lines += entry(left, option.help, column: column, width: width)
        }
        lines += ["", "Values may also be attached: --name=value.", "", "Keys:"]
        for (key, meaning) in device.keys {
            lines += entry(key, meaning, column: 10, width: width)
        }
        lines += ["", "Exit statuses:"]
        for status in ExitStatus.allCases {
            lines += entry(String(status.rawValue), status.meaning, column: 6, width: width)
        }
        return lines.joined(separator: "\n")
    }

    package static func version(of device: Device) -> String {
        "\(device.programName) \(Device.version)"
    }

    private static func entry(_ left: String, _ text: String, column: Int, width: Int) -> [String] {
        var lines: [String] = []
        var line = "  " + left
        line += String(repeating: " ", count: max(1, column - line.count))
        let indent = String(repeating: " ", count: column)
        var isEmpty = true
        for word in text.split(separator: " ") {
            if !isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = indent
                isEmpty = true
            }
            line += (isEmpty ? "" : " ") + word
            isEmpty = false
        }
        return lines + [line]
    }
}

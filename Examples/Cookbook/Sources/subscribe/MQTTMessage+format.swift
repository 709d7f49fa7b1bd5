import Foundation
import MQTT

extension MQTTMessage {
    /// This message in the given format; see the usage.
    func formatted(_ format: String) -> String {
        var result = ""
        var rest = format[...]
        while let character = rest.popFirst() {
            guard character == "%", let key = rest.popFirst() else {
                result.append(character)
                continue
            }
            switch key {
            case "t": result += topic
            case "p": result += text ?? "\(payload.count) bytes"
            case "x": result += bytes.map { String(format: "%02x", $0) }.joined()
            case "l": result += "\(payload.count)"
            case "q": result += "\(qos.rawValue)"
            case "r": result += isRetained ? "1" : "0"
            case "c": result += properties.contentType ?? ""
            case "P": result += properties.userProperties.map { "\($0.name)=\($0.value)" }.joined(separator: " ")
            default: result.append(key)
            }
        }
        return result
    }
}

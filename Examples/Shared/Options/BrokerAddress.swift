import MessagingShell

/// The broker's URL as it was given, with the user information taken out.
package struct BrokerAddress: Sendable, Equatable {
    /// Without user information: what clients get.
    package let url: String
    /// What is printed: without the values of its query either, which may be tokens.
    package var name: String { parsed.description }
    package var user: String? { parsed.credentials?.userName }
    package var password: String? { parsed.credentials?.password }
    package var isEncrypted: Bool { parsed.scheme.isSecure }
    private let parsed: BrokerURL

    /// - Throws: `.usage` that says what is wrong, without the credentials in it.
    init(_ text: String, for device: Device) throws(DeviceFailure) {
        let beginning = text.prefix { $0 != ":" }
        let written = beginning.lowercased()
        // An address that was copied from a browser or a cloud's console is taken as meant, and what another client calls
        // its schemes has an answer of its own.
        let isForeign =
            BrokerURL.Scheme(rawValue: written) == nil && text[beginning.endIndex...].utf8.starts(with: "://".utf8)
        guard device.schemes.contains(written) || isForeign else {
            throw Self.wrongScheme(text, written, for: device)
        }
        do throws(TransportError) {
            parsed = try BrokerURL(text, for: device.schemes.compactMap { BrokerURL.Scheme(rawValue: $0) })
        } catch {
            let sentence = error.message
            throw .usage("--broker: \(sentence.hasSuffix(".") ? sentence.dropLast() : sentence[...])")
        }
        guard parsed.credentials != nil, let slashes = text.firstRange(of: "://") else {
            url = text
            return
        }
        let afterSlashes = text[slashes.upperBound...]
        let authority = afterSlashes.prefix { !"/?#".contains($0) }
        let host = authority.lastIndex(of: "@").map { text[text.index(after: $0)...] } ?? afterSlashes
        url = String(text[..<slashes.upperBound] + host)
    }

    private static func wrongScheme(_ text: String, _ scheme: String, for device: Device) -> DeviceFailure {
        let schemes = device.schemes.map { $0 == "unix" ? "unix:" : "\($0)://" }.joined(separator: ", ")
        // In user:password@host without a scheme, the text before the first colon is a secret.
        let isScheme = text.utf8.starts(with: (scheme + "://").utf8)
        let example = device.schemes.first.map { ", as in \($0)://localhost" } ?? ""
        let owner = Device.allCases.first { $0.schemes.contains(scheme) }.map { ", which \($0.programName) does" } ?? ""
        let what =
            isScheme ? "does not speak '\(scheme.printable)://'\(owner)" : "needs a URL with a scheme\(example)"
        return .usage("--broker \(what); use one of \(schemes)")
    }
}

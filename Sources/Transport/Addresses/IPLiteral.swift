/// An address written as a number: what needs no name server.
package struct IPLiteral: Sendable, Hashable {
    /// Four of IPv4 or sixteen of IPv6, in network order.
    package let bytes: [UInt8]

    /// Nil for anything but an address; a zone, which means something on this machine alone, is left out.
    package init?(_ text: String) {
        let number = text.utf8.contains(UInt8(ascii: ":")) ? String(text.prefix { $0 != "%" }) : text
        // inet_pton would see the part before it.
        guard !number.utf8.contains(0) else { return nil }
        var four = in_addr()
        var sixteen = in6_addr()
        if inet_pton(AF_INET, number, &four) == 1 {
            bytes = withUnsafeBytes(of: &four) { Array($0) }
        } else if inet_pton(AF_INET6, number, &sixteen) == 1 {
            bytes = withUnsafeBytes(of: &sixteen) { Array($0) }
        } else {
            return nil
        }
    }
}

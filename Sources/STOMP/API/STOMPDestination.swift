public import Messaging

/// A destination together with the type of the values that are sent to it, and their format.
///
///     extension STOMPDestination<Order> {
///         static let orders = STOMPDestination("/queue/orders", as: .json)
///     }
///
///     try await client.sendAndConfirm(order, to: .orders)
///     for try await element in try await client.subscribe(to: .orders) {
///         print(element.messageID ?? "", try element.get())
///     }
public struct STOMPDestination<Value: Sendable>: Sendable {
    /// The destination in the broker's notation, such as `/topic/a.b` or `/queue/c`.
    public let name: String
    /// The `content-type` that messages declare and may declare. Nil declares none and accepts every type.
    public var contentType: String? { format.contentType }

    let format: ValueFormat<Value>

    /// A destination of values in a format of the application's own, such as that of generated types:
    ///
    ///     STOMPDestination<Order>(
    ///         "/queue/orders", contentType: "application/protobuf", encode: { try $0.serializedBytes() },
    ///         decode: { try Order(serializedBytes: $0) })
    public init(
        _ name: String, contentType: String? = nil, encode: @escaping @Sendable (Value) throws -> [UInt8],
        decode: @escaping @Sendable ([UInt8]) throws -> Value
    ) {
        self.init(name, ValueFormat(contentType: contentType, encode: encode, decode: decode))
    }

    private init(_ name: String, _ format: ValueFormat<Value>) {
        self.name = name
        self.format = format
    }
}

extension STOMPDestination where Value: Codable {
    /// A destination of values in a format: `STOMPDestination<Order>("/queue/orders", as: .json)`.
    public init(_ name: String, as coding: some PayloadCoding) {
        self.init(name, ValueFormat(coding))
    }
}

extension STOMPDestination<String> {
    /// A destination of text in UTF-8.
    public static func text(_ name: String) -> STOMPDestination { STOMPDestination(name, .text) }
}

extension STOMPDestination<[UInt8]> {
    /// A destination of bytes as they are.
    public static func bytes(_ name: String) -> STOMPDestination { STOMPDestination(name, .bytes) }
}

/// Header fields in the order in which they stand, names as they were written.
package struct HTTPFields: Sendable, Hashable {
    package struct Field: Sendable, Hashable {
        package var name: String
        package var value: String
    }

    package private(set) var fields: [Field] = []

    package init() {}

    package mutating func append(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    /// The values of all fields of this name; case does not matter.
    package func all(_ name: String) -> [String] {
        fields.filter { HTTPSyntax.isEqual($0.name, name) }.map(\.value)
    }

    /// The value of the first field of this name.
    package func first(_ name: String) -> String? {
        fields.first { HTTPSyntax.isEqual($0.name, name) }?.value
    }

    /// The members of a comma-separated list, over all fields of this name; empty members are left out.
    package func list(_ name: String) -> [String] {
        all(name).flatMap { value in
            Array(value.utf8).split(separator: HTTPSyntax.comma)
                .map { HTTPSyntax.trimmed($0) }.filter { !$0.isEmpty }.map { HTTPSyntax.text($0) }
        }
    }

    /// Whether such a list holds `token`; case does not matter.
    package func list(_ name: String, contains token: String) -> Bool {
        list(name).contains { HTTPSyntax.isEqual($0, token) }
    }

    /// Refuses what could not stand in a head, above all line ends, which would forge further fields.
    ///
    /// - Throws: `invalidField`.
    func checkForWriting(reserved: [String]) throws(WebSocketError) {
        for field in fields {
            guard HTTPSyntax.isToken(Array(field.name.utf8)) else {
                throw WebSocketError(.invalidField, "header field name \"\(field.name)\" is not a token")
            }
            guard field.value.utf8.allSatisfy(HTTPSyntax.isValueByte) else {
                throw WebSocketError(.invalidField, "value of header field \(field.name) holds a control character")
            }
            if reserved.contains(where: { HTTPSyntax.isEqual($0, field.name) }) {
                throw WebSocketError(.invalidField, "header field \(field.name) is written by the handshake itself")
            }
        }
    }

    func write(into output: inout [UInt8]) {
        for field in fields { output.appendLine("\(field.name): \(field.value)") }
        output.appendLine("")
    }
}

extension HTTPFields: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, String)...) {
        self.init()
        for (name, value) in elements { append(name, value) }
    }
}

extension [UInt8] {
    mutating func appendLine(_ line: String) {
        append(contentsOf: line.utf8)
        append(contentsOf: "\r\n".utf8)
    }
}

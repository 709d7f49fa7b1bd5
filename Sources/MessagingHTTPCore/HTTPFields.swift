/// Header fields in their order, with their names as they were written.
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

    /// The values of all fields of this name, compared without case.
    package func all(_ name: String) -> [String] {
        fields.filter { HTTPSyntax.isEqual($0.name, name) }.map { $0.value }
    }

    /// The value of the first field of this name, compared without case.
    package func first(_ name: String) -> String? {
        fields.first { HTTPSyntax.isEqual($0.name, name) }?.value
    }

    /// The members of a comma-separated list, over all fields of this name, without empty members.
    package func list(_ name: String) -> [String] {
        all(name).flatMap { value in
            Array(value.utf8).split(separator: HTTPSyntax.comma)
                .map { HTTPSyntax.trimmed($0) }.filter { !$0.isEmpty }.map { HTTPSyntax.text($0) }
        }
    }

    /// Whether such a list contains `token`, compared without case.
    package func list(_ name: String, contains token: String) -> Bool {
        list(name).contains { HTTPSyntax.isEqual($0, token) }
    }

    /// Refuses fields that would damage the head, above all line ends, which would forge further fields.
    ///
    /// - Parameter reserved: names that the caller writes itself.
    /// - Throws: `invalidField`.
    package func checkForWriting(reserved: [String]) throws(HTTPError) {
        for field in fields {
            guard HTTPSyntax.isToken(Array(field.name.utf8)) else {
                throw HTTPError(
                    .invalidField,
                    "The header field name \"\(field.name)\" is not a token. Use letters, digits and hyphens.")
            }
            guard field.value.utf8.allSatisfy(HTTPSyntax.isValueByte) else {
                throw HTTPError(
                    .invalidField,
                    "The value of header field \(field.name) contains a control character. Remove it.")
            }
            if reserved.contains(where: { HTTPSyntax.isEqual($0, field.name) }) {
                throw HTTPError(
                    .invalidField, "The header field \(field.name) is written by the protocol itself. Leave it out.")
            }
        }
    }

    /// Appends all fields and the empty line that ends a head.
    package func write(into output: inout [UInt8]) {
        for field in fields { HTTPSyntax.appendLine("\(field.name): \(field.value)", to: &output) }
        HTTPSyntax.appendLine("", to: &output)
    }
}

extension HTTPFields: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, String)...) {
        self.init()
        for (name, value) in elements { append(name, value) }
    }
}

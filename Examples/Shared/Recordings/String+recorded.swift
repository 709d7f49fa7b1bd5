import Foundation

extension String {
    /// The text in a file that should be UTF-8. Bytes that are not are taken for Windows-1252, as programs write that know
    /// no other characters: such a text is a name or a unit, and no reason to lose what is beside it.
    init(recorded bytes: some Collection<UInt8>) {
        self =
            String(validating: bytes, as: UTF8.self) ?? String(bytes: bytes, encoding: .windowsCP1252)
            ?? String(decoding: bytes, as: UTF8.self)
    }

    /// The text of UTF-16, which begins with a byte order mark, or with a character of which one byte is zero; nil for
    /// every other encoding.
    init?(utf16 contents: [UInt8]) {
        let isLittle: Bool
        switch (contents.first, contents.dropFirst().first) {
        case (0xFF, 0xFE), (.some(1...), 0): isLittle = true
        case (0xFE, 0xFF), (0, .some(1...)): isLittle = false
        default: return nil
        }
        let units = stride(from: 0, to: contents.count - 1, by: 2).map { index in
            let (first, second) = (UInt16(contents[index]), UInt16(contents[index + 1]))
            return isLittle ? second << 8 | first : first << 8 | second
        }
        self.init(decoding: units.drop { $0 == 0xFEFF }, as: UTF16.self)
    }
}

import Foundation

extension String {
    /// The text in a file that should be UTF-8. Bytes that are not are taken for Windows-1252, as programs write that know
    /// no other characters: such a text is a name or a unit, and no reason to lose what is beside it.
    init(recorded bytes: some Collection<UInt8>) {
        self =
            String(validating: bytes, as: UTF8.self) ?? String(bytes: bytes, encoding: .windowsCP1252)
            ?? String(decoding: bytes, as: UTF8.self)
    }

    /// The text of UTF-16, which begins with a byte order mark, or with two characters of which the same byte is zero; nil
    /// for every other encoding. One zero is not enough: zeros are what a file has where nothing was written.
    init?(utf16 contents: [UInt8]) {
        let isLittle: Bool
        switch contents.prefix(4).map({ $0 == 0 }) {
        case _ where contents.starts(with: [0xFF, 0xFE]), [false, true, false, true]: isLittle = true
        case _ where contents.starts(with: [0xFE, 0xFF]), [true, false, true, false]: isLittle = false
        default: return nil
        }
        let units = stride(from: 0, to: contents.count - 1, by: 2).map { index in
            let (first, second) = (UInt16(contents[index]), UInt16(contents[index + 1]))
            return isLittle ? second << 8 | first : first << 8 | second
        }
        self.init(decoding: units.drop { $0 == 0xFEFF }, as: UTF16.self)
    }
}

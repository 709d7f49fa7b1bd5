import Wire

/// How a broker reads wildcards in the destination of a subscription, as data.
public struct STOMPWildcards: Sendable, Hashable {
    /// What separates the words of a destination.
    public var separator: UInt8
    /// The word that stands for exactly one word; nil when there is none.
    public var oneWord: UInt8?
    /// The word that stands for any number of words, none included; nil when there is none.
    public var manyWords: UInt8?
    /// Destinations with one of these beginnings take wildcards.
    public var prefixes: [String]

    public init(separator: UInt8, oneWord: UInt8?, manyWords: UInt8?, prefixes: [String]) {
        self.separator = separator
        self.oneWord = oneWord
        self.manyWords = manyWords
        self.prefixes = prefixes
    }

    /// No wildcards: a subscription matches its own destination.
    public static let none = STOMPWildcards(separator: 0x2E, oneWord: nil, manyWords: nil, prefixes: [])

    /// Whether `pattern` holds a word that stands for others.
    public func isPattern(_ pattern: String) -> Bool {
        words(of: pattern)?.contains { isWildcard($0) } ?? false
    }

    /// Whether a message to `destination` reaches a subscription of `pattern`. Compared as bytes.
    public func matches(_ pattern: String, _ destination: String) -> Bool {
        if pattern.hasSameBytes(as: destination) { return true }
        guard let prefix = prefix(of: pattern), let other = self.prefix(of: destination),
            prefix.hasSameBytes(as: other),
            let patternWords = words(of: pattern), let destinationWords = words(of: destination)
        else { return false }
        return matches(patternWords[...], destinationWords[...])
    }

    private typealias Word = Substring.UTF8View.SubSequence

    private func isWildcard(_ word: Word) -> Bool {
        word.count == 1 && (word.first == oneWord || word.first == manyWords)
    }

    private func prefix(of destination: String) -> String? {
        prefixes.first { destination.utf8.starts(with: $0.utf8) }
    }

    private func words(of destination: String) -> [Word]? {
        guard let prefix = prefix(of: destination) else { return nil }
        let name = Substring(destination).utf8.dropFirst(prefix.utf8.count)
        return name.split(separator: separator, omittingEmptySubsequences: false)
    }

    /// Greedy matching that remembers only the last "many" word, so that its time is the product of the two lengths.
    private func matches(_ pattern: ArraySlice<Word>, _ words: ArraySlice<Word>) -> Bool {
        var at = pattern.startIndex
        var word = words.startIndex
        var retry: (pattern: Int, word: Int)?
        while word < words.endIndex {
            if at < pattern.endIndex, pattern[at].count == 1, let many = manyWords, pattern[at].first == many {
                retry = (at + 1, word)
                at += 1
            } else if at < pattern.endIndex, fits(pattern[at], words[word]) {
                at += 1
                word += 1
            } else if let last = retry {
                at = last.pattern
                word = last.word + 1
                retry = (last.pattern, last.word + 1)
            } else {
                return false
            }
        }
        return pattern[at...].allSatisfy { $0.count == 1 && manyWords != nil && $0.first == manyWords }
    }

    private func fits(_ pattern: Word, _ word: Word) -> Bool {
        if pattern.count == 1, let oneWord, pattern.first == oneWord { return true }
        return pattern.elementsEqual(word)
    }
}

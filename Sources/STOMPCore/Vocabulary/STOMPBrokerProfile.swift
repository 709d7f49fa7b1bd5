import MessagingWire

/// What is known about a kind of broker beyond the specification, as data. Chosen from the `server` header of
/// CONNECTED; its contents are defaults that options may replace.
public struct STOMPBrokerProfile: Sendable, Hashable {
    /// How a durable subscription is asked for.
    public enum Durable: Sendable, Hashable {
        case unsupported
        /// `durable:true` and `auto-delete:false`; the subscription's id is its name.
        case flags
        /// The name goes into this header, and CONNECT must carry a `client-id`.
        case named(header: String)
    }

    /// How many messages may be unacknowledged, or how many bytes.
    public enum PrefetchUnit: Sendable, Hashable { case messages, bytes }

    /// How a reply comes back to a `reply-to` of a temporary queue.
    public enum TemporaryQueues: Sendable, Hashable {
        case unsupported
        /// Subscribe to the queue before naming it.
        case subscribeFirst
        /// Never subscribe: the reply's `subscription` header is the `reply-to` that SEND named.
        case implicit
    }

    /// How the expiry of a message is given.
    public enum Expiry: Sendable, Hashable {
        /// `expires`: milliseconds since 1970.
        case absolute
        /// `expiration`: milliseconds from when it arrives.
        case relative
    }

    /// What a broker does with the unanswered messages of a subscription that ended, while its connection is open.
    public enum Unanswered: Sendable, Hashable {
        case unknown
        /// It gives them to the destination's other consumers at once.
        case redelivered
        /// It keeps them until the connection ends; no other consumer gets them before.
        case keptUntilConnectionEnds
    }

    public var name: String
    /// What the `server` header begins with.
    public var serverPrefix: String
    public var wildcards: STOMPWildcards = .none
    public var durable: Durable = .unsupported
    /// UNSUBSCRIBE with the headers of a durable subscription deletes it. Here only once it has no consumer any more, so
    /// that one without them comes first.
    public var deletesDurableApart = false
    /// UNSUBSCRIBE deletes only durable subscriptions to destinations with one of these beginnings. Default: nil, all.
    public var deletableDurablePrefixes: [String]?
    /// How the expiry of a message is given.
    public var expiry: Expiry = .absolute
    public var prefetchHeader: String?
    public var prefetchUnit: PrefetchUnit = .messages
    /// Prefetch has an effect only with acknowledgements by the client.
    public var prefetchNeedsAcknowledgement = false
    public var supportsSelectors = false
    public var temporaryQueues: TemporaryQueues = .unsupported
    /// The header of NACK that determines whether the message returns to its queue; nil if the broker decides.
    public var nackRequeueHeader: String?
    /// A NACK without that header comes back at once, again and again.
    public var nackRedeliversAtOnce = false
    /// NACK has the effect of ACK, so that a rejected message would be lost: rejecting one fails with
    /// ``STOMPUsageError/Code/unsupportedByBroker``. Default: false.
    public var acknowledgesRejected = false
    /// NACK is for its own message alone in the mode `client` too. Default: false, for those before it as well, as STOMP 1.2
    /// "NACK" says.
    public var rejectsOneByOne = false
    /// A SEND without `content-length` becomes a text message there, one with it a message of bytes.
    public var missingContentLengthMeansText = false
    /// Whether the broker sends RECEIPT for the frames that ask for it, other than DISCONNECT. Default: true.
    ///
    /// Where it does not, SUBSCRIBE and UNSUBSCRIBE carry no `receipt` and count as done once they are written. A call that
    /// waits for a receipt fails with ``STOMPUsageError/Code/unsupportedByBroker``. (STOMP 1.2 "Standard Headers", "RECEIPT")
    public var sendsReceipts = true
    /// ERROR names the receipt of the frame that failed, if that asked for one. An ERROR that names no receipt is not
    /// about a frame whose receipt is awaited.
    public var errorNamesReceipt = false
    /// Texts in an ERROR of the session that is about no frame of the client: no frame whose receipt is awaited counts as
    /// refused then.
    public var errorsAboutNoFrame: [String] = []
    /// A frame that failed gets a RECEIPT after its ERROR; the RECEIPT then means nothing.
    public var receiptFollowsError = false
    /// The receipt of COMMIT does not wait until the messages of the transaction are in their queues; that of each SEND
    /// does. So each SEND of a transaction has a receipt, and the client's commit waits for all of them.
    public var confirmsCommitEarly = false
    /// An acknowledgement in the mode `client` counts for all messages of the connection up to that one, those of other
    /// subscriptions included. A subscription in that mode is refused beside another one with acknowledgements
    /// (``STOMPUsageError/Code/unsupportedByBroker``). Default: false, for its own subscription alone, as STOMP 1.2 "ACK" says.
    public var acknowledgesWholeConnection = false
    /// What becomes of messages that were delivered and not answered when their subscription ends and the connection
    /// does not.
    public var unanswered = Unanswered.unknown
    /// CONNECT's headers are unescaped there against the specification.
    public var unescapesConnect = false
    /// Frames come in text messages of a WebSocket even where their bodies are not UTF-8.
    public var sendsBytesAsText = false
    /// Bytes of one header line that pass, and header lines of one frame; nil for no limit worth a check. Beyond it
    /// ActiveMQ reads the rest of the frame as commands.
    public var longestHeaderLine: Int?
    public var mostHeaders: Int?
    /// Texts in an ERROR before CONNECTED that mean "wrong user or password": no use in trying again with the same.
    public var refusedCredentials: [String] = []

    public init(name: String, serverPrefix: String) {
        self.name = name
        self.serverPrefix = serverPrefix
    }

    /// The profile for a `server` header; ``generic`` if it is missing or unknown.
    public init(serverHeader: String?) {
        let header = serverHeader ?? ""
        self = Self.known.first { header.utf8.starts(with: $0.serverPrefix.utf8) } ?? .generic
    }

    /// The headers that make a subscription durable, or nil if the broker does not support it.
    public func durableHeaders(name: String) -> STOMPHeaders? {
        switch durable {
        case .unsupported: nil
        case .flags: ["durable": "true", "auto-delete": "false"]
        case .named(let header): [header: name]
        }
    }

    /// Whether UNSUBSCRIBE deletes a durable subscription to a destination.
    package func deletesDurable(to destination: String) -> Bool {
        deletableDurablePrefixes?.contains { destination.utf8.starts(with: $0.utf8) } ?? true
    }

    /// The header that bounds what is delivered without an acknowledgement, or nil if the broker does not support it.
    ///
    /// - Parameter bytesPerMessage: the estimate for brokers that count bytes.
    public func prefetchHeaders(messages: Int, bytesPerMessage: Int = 1_024) -> STOMPHeaders? {
        guard let prefetchHeader, messages > 0 else { return nil }
        let (bytes, overflow) = messages.multipliedReportingOverflow(by: max(1, bytesPerMessage))
        return [prefetchHeader: prefetchUnit == .messages ? "\(messages)" : "\(overflow ? .max : bytes)"]
    }

    /// What to do with a message whose subscription has ended.
    var unansweredAdvice: String {
        switch unanswered {
        case .unknown:
            "Do not answer it: the broker delivers it again, some only when this connection ends."
        case .redelivered: "Do not answer it: \(name) has given it to the destination's next consumer."
        case .keptUntilConnectionEnds:
            "\(name) accepts no answer any more, and delivers the message again when this connection ends: disconnect, or use a client of its own for each worker."
        }
    }

    /// Throws if this broker is known never to deliver a rejected message again, whatever NACK asks for.
    package func checkRequeue(_ requeue: Bool?) throws(STOMPUsageError) {
        guard requeue == true, nackRequeueHeader == nil, self != .generic else { return }
        let advice =
            unanswered == .redelivered
            ? "Leave the message unanswered and unsubscribe: the destination's next consumer then gets it at once."
            : "Leave the message unanswered: the broker delivers it again, some only when this connection ends."
        throw STOMPUsageError(
            .unsupportedByBroker,
            "\(name) decides by itself what becomes of a rejected message, and does not put it back into its queue. \(advice)"
        )
    }

    /// The header of a NACK that puts the message back into its queue or not; empty where the broker decides.
    public func nackHeaders(requeue: Bool) -> STOMPHeaders {
        nackRequeueHeader.map { [$0: requeue ? "true" : "false"] } ?? [:]
    }
}

/// How a broker reads wildcards in the destination of a subscription, as data.
public struct STOMPWildcards: Sendable, Hashable {
    /// The character that separates the words of a destination.
    public var separator: UInt8
    /// The word that matches exactly one word; nil if the broker has no such wildcard.
    public var oneWord: UInt8?
    /// The word that matches any number of words, including zero; nil if the broker has no such wildcard.
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

// After CONNACK: subscriptions, their SUBACK, and only then messages.

/// How far a connection is with the subscriptions that have to come before its messages.
enum SubscribingStage: UInt8, Sendable {
    /// The caller is about to write SUBSCRIBE packets.
    case writing
    /// They are written, and some are not answered.
    case awaitingAnswers
    /// Nothing holds messages back.
    case done
}

extension MQTTEngine {
    /// The caller has written every SUBSCRIBE that has to be answered before the first PUBLISH of this connection.
    ///
    /// Needed once after each ``MQTTEngineEvent/Kind/connected(_:)`` if ``MQTTEngineConfiguration/subscribesFirst`` is
    /// set. Messages leave with the last SUBACK, whatever it says, or now if there was nothing to subscribe.
    public mutating func subscriptionsSent(at now: Int64, into effects: inout MQTTEffects) {
        guard subscribingStage == .writing else { return }
        subscribingStage = .awaitingAnswers
        if unansweredSubscriptions == 0 { releaseMessages(at: now, into: &effects) }
    }

    /// CONNACK came: from now on messages wait, if the configuration says so.
    mutating func beginSubscribing() {
        unansweredSubscriptions = 0
        subscribingStage = configuration.subscribesFirst ? .writing : .done
    }

    /// One of the first subscriptions was answered.
    mutating func firstSubscriptionAnswered(at now: Int64, into effects: inout MQTTEffects) {
        unansweredSubscriptions -= 1
        if unansweredSubscriptions == 0, subscribingStage == .awaitingAnswers {
            releaseMessages(at: now, into: &effects)
        }
    }

    private mutating func releaseMessages(at now: Int64, into effects: inout MQTTEffects) {
        subscribingStage = .done
        pump(at: now, into: &effects)
    }
}

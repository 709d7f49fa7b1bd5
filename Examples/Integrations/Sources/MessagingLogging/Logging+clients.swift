public import Logging
public import MQTT
public import STOMP

extension MQTTClient {
    /// Logs what happens to the client until the task is cancelled: what may need attention as warnings, the rest for debugging.
    /// Secrets are masked.
    public nonisolated func logEvents(to logger: Logger) async {
        for await event in events {
            switch event {
            case .attemptFailed, .connectionLost, .subscriptionLost, .undelivered, .sessionLost,
                .unsentMessagesDiscarded, .requestPassedOver, .receiveMaximumReached, .readingPaused, .sendingStalled:
                logger.warning("\(event)", metadata: ["client": "\(clientID)"])
            default:
                logger.debug("\(event)", metadata: ["client": "\(clientID)"])
            }
        }
    }
}

extension STOMPClient {
    /// Logs what happens to the client until the task is cancelled: what may need attention as warnings, the rest for debugging.
    /// Secrets are masked.
    public nonisolated func logEvents(to logger: Logger) async {
        for await event in events {
            switch event {
            case .attemptFailed, .connectionLost, .subscriptionLost, .unsentMessagesDiscarded, .errorReceived,
                .readingPaused, .sendingStalled:
                logger.warning("\(event)")
            default:
                logger.debug("\(event)")
            }
        }
    }
}

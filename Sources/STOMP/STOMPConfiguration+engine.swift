import Messaging
import STOMPCore
import Transport
import Wire

extension STOMPConfiguration {
    var engineConfiguration: STOMPEngineConfiguration {
        var engine = STOMPEngineConfiguration()
        engine.limits = limits
        engine.connectTimeout = connectTimeout.inNanoseconds
        engine.disconnectTimeout = 2_000_000_000
        engine.receiptTimeout = requestTimeout.inNanoseconds
        engine.maximumReceipts = maximumReceipts
        engine.profile = profile
        return engine
    }

    func connectOptions(credentials: Credentials?) -> STOMPConnectOptions {
        var options = STOMPConnectOptions()
        options.versions = versions

        options.host = host
        options.login = credentials?.userName
        options.passcode = credentials?.password
        options.clientID = clientID
        options.heartBeat = STOMPHeartBeat(
            outgoing: Int(clamping: outgoingHeartBeat.inNanoseconds / 1_000_000),
            incoming: Int(clamping: incomingHeartBeat.inNanoseconds / 1_000_000))
        options.headers = connectHeaders
        options.escaping = connectEscaping
        return options
    }
}

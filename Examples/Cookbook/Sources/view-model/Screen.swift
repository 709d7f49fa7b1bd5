import Observation

/// Prints what the screen shows, each time that something of it has changed, until the user has seen enough.
@MainActor func draw(_ model: ThermostatModel, until isEnough: () -> Bool) async {
    let (changes, changed) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    var shown = ""
    changed.yield()
    for await _ in changes {
        let line = withObservationTracking {
            let target = model.target.map { " -> \($0)\(model.isSent ? "" : " (to be sent)")" } ?? ""
            return "[\(model.connection)] \(model.celsius.map { "\($0)" } ?? "--")\(target) \(model.problem ?? "")"
        } onChange: {
            changed.yield()
        }
        if line != shown { print(line) }
        shown = line
        if isEnough() { break }
    }
}

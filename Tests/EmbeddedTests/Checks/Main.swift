import Board
import MQTTChecks
import STOMPChecks

/// The codecs' vectors and engines back to back, on a machine whose `Int` has 32 bits.
@main
struct Main {
    static func main() {
        print("Int has \(Int.bitWidth) bits")
        var mqtt = Checks()
        mqtt.readMQTTVectors()
        print("MQTT vectors: \(mqtt.count) checks")
        mqtt.readChangedMQTTVectors(rounds: 40)
        mqtt.talkMQTT()
        print("MQTT: \(mqtt.count) checks, \(mqtt.failures) failed")
        let stomp = STOMPChecks.run(changed: 40)
        print("STOMP: \(stomp.count) checks, \(stomp.failures) failed")
        print("memory: \(memory_peak()) bytes")
        leave(mqtt.failures + stomp.failures == 0 ? 0 : 1)
    }
}

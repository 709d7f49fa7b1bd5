extension MQTTPacket.Connect: CustomReflectable {
    /// The fields, with the user name and the password hidden.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "version": version, "clientID": clientID, "cleanStart": cleanStart, "keepAlive": keepAlive,
                "userName": userName == nil ? "none" : "•••", "password": password == nil ? "none" : "•••",
                "will": will as Any, "properties": properties,
            ], displayStyle: .struct)
    }
}

extension MQTTProperty: CustomReflectable {
    /// The property; Authentication Data is hidden.
    public var customMirror: Mirror {
        let value: Any = identifier == .authenticationData ? "•••" : value
        return Mirror(self, children: ["identifier": identifier, "value": value], displayStyle: .struct)
    }
}

import MessagingWire

// What reflection shows: dumps, debuggers and descriptions of values that hold these. Embedded Swift has none.
#if !hasFeature(Embedded)
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

    extension MQTTEngineConfiguration: CustomReflectable {
        /// The main fields, with the user name, the password and the authentication data hidden.
        public var customMirror: Mirror {
            let hasSecrets = userName != nil || password != nil || authenticationData != nil
            return Mirror(
                self,
                children: [
                    "role": role, "version": version, "clientID": clientID, "cleanStart": cleanStart,
                    "keepAlive": keepAlive, "sessionExpiry": sessionExpiry, "will": will as Any,
                    "connectProperties": connectProperties, "credentials": hasSecrets ? "•••" : "none",
                ], displayStyle: .struct)
        }
    }

    extension MQTTProperties: CustomReflectable {
        /// The properties; each hides Authentication Data, and values of user properties with the names of secrets.
        public var customMirror: Mirror { Mirror(self, unlabeledChildren: list, displayStyle: .collection) }
    }

    extension MQTTProperty: CustomReflectable {
        /// The property; Authentication Data and the value of a user property with the name of a secret are hidden.
        public var customMirror: Mirror {
            var shown: Any = value
            if isSecret { shown = "•••" }
            if case .pair(let pair) = value { shown = pair }
            return Mirror(self, children: ["identifier": identifier, "value": shown], displayStyle: .struct)
        }
    }

    extension MQTTUserProperty: CustomReflectable {
        /// The name and the value, which is hidden if the name is that of a secret.
        public var customMirror: Mirror {
            let shown = SecretNames.isSecret(name) ? "•••" : value
            return Mirror(self, children: ["name": name, "value": shown], displayStyle: .struct)
        }
    }
#endif

// What reflection shows: dumps, debuggers and descriptions of values that hold these. Embedded Swift has none.
#if !hasFeature(Embedded)
    extension STOMPConnectOptions: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(
                self,
                children: [
                    "versions": versions, "host": host, "login": login == nil ? "none" : "•••",
                    "passcode": passcode == nil ? "none" : "•••", "clientID": clientID as Any, "heartBeat": heartBeat,
                    "headers": headers, "escaping": escaping, "usesSTOMPCommand": usesSTOMPCommand,
                ])
        }
    }

    extension STOMPConnectRequest: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(
                self,
                children: [
                    "version": version, "host": host as Any, "clientID": clientID as Any, "heartBeat": heartBeat,
                    "headers": headers,
                ])
        }
    }

    extension STOMPHeaders.Field: CustomReflectable {
        public var customMirror: Mirror { Mirror(self, children: []) }
    }

    extension STOMPHeaders: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(self, unlabeledChildren: fields.map(\.description), displayStyle: .collection)
        }
    }
#endif

/// Small programs around other people's clients: commands come in and events go out, each a line of JSON, with bodies in
/// Base64.
enum PythonScripts {
    /// Arguments: port, virtual host, user, password (an empty user means none).
    static let stomp = """
        import base64, json, sys, threading
        import stomp

        port, host, user, password = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
        lock = threading.Lock()

        def tell(event, frame=None):
            line = {"event": event}
            if frame is not None:
                body = frame.body if isinstance(frame.body, bytes) else (frame.body or "").encode()
                line["headers"] = dict(frame.headers)
                line["body"] = base64.b64encode(body).decode()
            with lock:
                print(json.dumps(line), flush=True)

        class Listener(stomp.ConnectionListener):
            def on_connected(self, frame): tell("connected", frame)
            def on_message(self, frame): tell("message", frame)
            def on_receipt(self, frame): tell("receipt", frame)
            def on_error(self, frame): tell("error", frame)
            def on_disconnected(self): tell("disconnected")

        connection = stomp.Connection12([("127.0.0.1", port)], vhost=host, auto_decode=False,
                                        reconnect_attempts_max=1)
        connection.set_listener("", Listener())
        connection.connect(user or None, password or None, wait=True)
        for line in sys.stdin:
            command = json.loads(line)
            headers = command.get("headers", {})
            operation = command["operation"]
            if operation == "subscribe":
                connection.subscribe(command["destination"], command["id"], command.get("ack", "auto"),
                                     headers=headers)
            elif operation == "send":
                connection.send(command["destination"], base64.b64decode(command["body"]), headers=headers)
            elif operation == "ack":
                connection.ack(command["id"])
            elif operation == "nack":
                connection.nack(command["id"])
        connection.disconnect()
        """

    /// Arguments: port, protocol version (3, 4 or 5), client identifier, user, password (an empty user means none).
    static let mqtt = """
        import base64, json, sys
        import paho.mqtt.client as paho

        port, version, name, user, password = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]

        def tell(event, **more):
            print(json.dumps({"event": event, **more}), flush=True)

        client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=name, protocol=version)
        if user:
            client.username_pw_set(user, password)
        client.on_connect = lambda c, d, flags, reason, properties: tell("connected", reason=str(reason))
        client.on_disconnect = lambda c, d, flags, reason, properties: tell("disconnected", reason=str(reason))
        client.on_subscribe = lambda c, d, mid, reasons, properties: tell("subscribed", reason=str(reasons[0]))
        client.on_publish = lambda c, d, mid, reason, properties: tell("published")
        client.on_message = lambda c, d, message: tell(
            "message", topic=message.topic, qos=message.qos, retain=bool(message.retain),
            body=base64.b64encode(message.payload).decode())
        client.connect("127.0.0.1", port)
        client.loop_start()
        for line in sys.stdin:
            command = json.loads(line)
            if command["operation"] == "subscribe":
                client.subscribe(command["destination"], command.get("qos", 0))
            elif command["operation"] == "publish":
                client.publish(command["destination"], base64.b64decode(command["body"]), command.get("qos", 0),
                               command.get("retain", False))
        client.disconnect()
        client.loop_stop()
        """
}

"""stomp.py as people use it, in the places of our rows.

Usage: peer_stomp.py PORT send COUNT | receive COUNT; prints seconds.
"""
import os
import sys
import threading
import time

import stomp

port, mode, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
body = (
    '{"deviceID":"2262EC25-E9FD-4578-BADE-4E113DE45934","lat":37.33521504,"lng":-122.03254905,'
    '"ts":"2014-03-13T17:19:05+01:00"}'
)
destination = "/topic/device.2262EC25-E9FD-4578-BADE-4E113DE45934.location"
done = threading.Event()


class Listener(stomp.ConnectionListener):
    seen = 0

    def on_receipt(self, frame):
        done.set()

    def on_message(self, frame):
        self.seen += 1
        if self.seen == count:
            done.set()


connection = stomp.Connection12([("127.0.0.1", port)])
connection.set_listener("", Listener())
connection.connect(wait=True)
start = time.perf_counter()
if mode == "send":
    for _ in range(count):
        connection.send(destination, body, content_type="application/json;charset=utf-8")
    connection.send(destination, body, content_type="application/json;charset=utf-8", receipt="last")
else:
    connection.subscribe("flood/%d" % count, id=1)
done.wait(120)
print(time.perf_counter() - start)
sys.stdout.flush()

os._exit(0)

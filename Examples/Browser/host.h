// What the page does for the engine: page.js.
#include <stddef.h>
#include <stdint.h>

/// Writes bytes to the WebSocket.
void host_write(const uint8_t *bytes, size_t count);
/// Closes the WebSocket; `closed` follows.
void host_close(void);
/// Opens a WebSocket after so many milliseconds; `opened` or `closed` follows.
void host_open(double delay);
/// Calls `timedOut` after so many milliseconds, instead of after those asked for before.
void host_wake(double delay);
/// Shows the state of the connection: 0 closed, 1 connecting, 2 connected.
void host_state(int32_t state);
/// Shows a message.
void host_message(const uint8_t *topic, size_t topic_count, const uint8_t *payload, size_t payload_count);
/// Shows how many messages of the page the broker has acknowledged.
void host_acknowledged(int32_t count);

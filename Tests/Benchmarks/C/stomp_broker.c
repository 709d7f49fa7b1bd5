// The broker's side of the STOMP rows: one thread for all connections, never the bottleneck.
// Usage: stomp_broker           prints its port, then serves until it is killed.
//
// It answers CONNECT, and every frame that has a receipt header; it counts and drops the rest. A SUBSCRIBE to
// "flood/COUNT" is answered with COUNT MESSAGE frames with the body of the location that the rows send.
struct state {
    char none;
};

#include "broker.h"

static void forget(struct state *state) { (void)state; }

static const char body[] =
    "{\"deviceID\":\"2262EC25-E9FD-4578-BADE-4E113DE45934\",\"lat\":37.33521504,\"lng\":-122.03254905,"
    "\"ts\":\"2014-03-13T17:19:05+01:00\"}";

static void flood(struct connection *connection, long count, const char *id) {
    char one[512];
    int size = snprintf(
        one, sizeof one,
        "MESSAGE\nsubscription:%s\nmessage-id:1\ndestination:/topic/device.2262EC25.location\n"
        "content-type:application/json;charset=utf-8\ncontent-length:%zu\n\n%s",
        id, sizeof body - 1, body) + 1;
    char *block = malloc((size_t)size * 200);
    for (int i = 0; i < 200; i++) memcpy(block + i * size, one, (size_t)size);
    while (count > 0 && !connection->ended) {
        long now = count < 200 ? count : 200;
        write_all(connection, block, (size_t)(now * size));
        count -= now;
    }
    free(block);
}

static char *header(char *frame, const char *name, char *value, size_t room) {
    char *found = strstr(frame, name);
    if (!found) return NULL;
    found += strlen(name);
    size_t length = strcspn(found, "\r\n");
    if (length >= room) length = room - 1;
    memcpy(value, found, length);
    value[length] = 0;
    return value;
}

static size_t serve(struct connection *connection) {
    // What is written before the next connection has its turn.
    static char answers[1 << 20];
    char *start = (char *)connection->bytes, *at = start, *end = at + connection->count, *nul;
    size_t answered = 0;
    while ((nul = memchr(at, 0, (size_t)(end - at)))) {
        while (*at == '\n') at++;
        char value[256], id[256];
        // A client of STOMP 1.1 or newer may say STOMP instead.
        if (!strncmp(at, "CONNECT\n", 8) || !strncmp(at, "STOMP\n", 6)) {
            static const char hello[] = "CONNECTED\nversion:1.2\nheart-beat:0,0\n\n";
            write_all(connection, hello, sizeof hello);
        } else if (*at == 'S' && at[1] == 'E') {
            if (header(at, "\nreceipt:", value, sizeof value)) {
                answered += (size_t)sprintf(answers + answered, "RECEIPT\nreceipt-id:%s\n\n", value) + 1;
                if (answered > sizeof answers - 1024) {
                    write_all(connection, answers, answered);
                    answered = 0;
                }
            }
        } else {
            if (header(at, "\nreceipt:", value, sizeof value))
                answered += (size_t)sprintf(answers + answered, "RECEIPT\nreceipt-id:%s\n\n", value) + 1;
            if (answered) write_all(connection, answers, answered);
            answered = 0;
            long messages;
            if (header(at, "\ndestination:", value, sizeof value) && header(at, "\nid:", id, sizeof id) &&
                sscanf(value, "flood/%ld", &messages) == 1)
                flood(connection, messages, id);
        }
        at = nul + 1;
    }
    if (answered) write_all(connection, answers, answered);
    return (size_t)(at - start);
}

// The broker's side of the MQTT rows: one thread for all connections, never the bottleneck.
// Usage: mqtt_broker            prints its port, then serves until it is killed.
//
// It answers CONNECT, SUBSCRIBE, UNSUBSCRIBE and PINGREQ, acknowledges QoS 1 and 2, counts and drops everything else. A
// SUBSCRIBE whose filter is "flood/COUNT/PAYLOAD" is answered with COUNT messages of PAYLOAD bytes on a topic of 48 bytes,
// "floods/COUNT/TOPICS" with COUNT messages of 24 bytes on "growth/x/NUMBER/y" for TOPICS numbers in turn, and
// "traffic/…" with traffic as traffic.h describes it. A client called "hold-N" gets its acknowledgements when N are due, one called "back-N" from the last to the first.
#include "traffic.h"

struct state {
    int version;
    // The traffic that the client asked for.
    struct traffic wanted;
    long sent, unacknowledged;
    // How many acknowledgements are held back until they are sent together, and those that are.
    size_t hold, answered;
    int backwards;
    unsigned char *answers;
};

enum { answers_size = 1 << 19 };

#include "broker.h"

static void forget(struct state *state) {
    free(state->answers);
    forget_traffic(&state->wanted);
}

static size_t make_publish(unsigned char *out, size_t payload) {
    static const char topic[] = "benchmark/site-0001/line-0002/machine-0003/state";
    size_t topic_length = sizeof topic - 1;
    unsigned char *at = out;
    *at++ = 0x30;
    at = put_variable(at, 2 + topic_length + payload);
    *at++ = (unsigned char)(topic_length >> 8);
    *at++ = (unsigned char)topic_length;
    memcpy(at, topic, topic_length);
    at += topic_length;
    memset(at, 'p', payload);
    return (size_t)(at - out) + payload;
}

static void flood(struct connection *connection, long count, size_t payload) {
    unsigned char *one = malloc(payload + 64);
    size_t size = make_publish(one, payload), per_block = 65536 / size;
    if (per_block == 0) per_block = 1;
    unsigned char *block = malloc(per_block * size);
    for (size_t i = 0; i < per_block; i++) memcpy(block + i * size, one, size);
    while (count > 0 && !connection->ended) {
        size_t now = (size_t)count < per_block ? (size_t)count : per_block;
        write_all(connection, block, now * size);
        count -= (long)now;
    }
    free(one);
    free(block);
}

static void floods(struct connection *connection, long count, long topics) {
    enum { size = 2 + 2 + 16 + 24, per_block = 1000 };
    static unsigned char block[per_block * size];
    for (long done = 0; done < count && !connection->ended;) {
        unsigned char *at = block;
        for (int i = 0; i < per_block && done < count; i++, done++, at += size) {
            memcpy(at, "\x30\x2a\0\x10growth/x/00000/y", 20);
            long number = done % topics;
            for (int digit = 17; digit > 12; digit--, number /= 10) at[digit] = (unsigned char)('0' + number % 10);
            memset(at + 20, 'p', 24);
        }
        write_all(connection, block, (size_t)(at - block));
    }
}

// Sends as much of the traffic as the window allows.
static void continue_traffic(struct connection *connection) {
    struct state *state = &connection->state;
    while (state->sent < state->wanted.count && !connection->ended) {
        size_t offset, size;
        long count = next_messages(&state->wanted, state->sent, &state->unacknowledged, &offset, &size);
        if (count == 0) return;
        write_all(connection, state->wanted.bytes + offset, size);
        state->sent += count;
    }
}

// Grants every filter, and sends the messages that one asks for.
static void subscribe(struct connection *connection, const unsigned char *body, size_t size) {
    struct state *state = &connection->state;
    int version = state->version;
    size_t granted = 0, start = 2 + (version == 5 ? 1 + (size_t)body[2] : 0), at = start;
    unsigned char qos = 0;
    while (at + 2 < size) {
        at += 3 + ((size_t)body[at] << 8 | body[at + 1]);
        qos = body[at - 1] & 3;
        granted++;
    }
    unsigned char *answer = calloc(1, granted + 9), *end = answer;
    *end++ = 0x90;
    end = put_variable(end, 2 + (version == 5) + granted);
    *end++ = body[0];
    *end++ = body[1];
    if (version == 5) *end++ = 0;
    memset(end, qos, granted);
    write_all(connection, answer, (size_t)(end - answer) + granted);
    free(answer);

    char filter[128] = {0};
    size_t length = (size_t)body[start] << 8 | body[start + 1];
    memcpy(filter, body + start + 2, length < 127 ? length : 127);
    long messages, topics;
    unsigned long payload;
    if (sscanf(filter, "flood/%ld/%lu", &messages, &payload) == 2) flood(connection, messages, payload);
    if (sscanf(filter, "floods/%ld/%ld", &messages, &topics) == 2) floods(connection, messages, topics);
    if (!strncmp(filter, "traffic/", 8) && parse_traffic(&state->wanted, filter + 8)) {
        state->wanted.version = version;
        forget_traffic(&state->wanted);
        make_traffic(&state->wanted);
        state->sent = state->unacknowledged = 0;
        continue_traffic(connection);
    }
}

// Sends the acknowledgements that are due, from the last to the first if they are to come so.
static void acknowledge(struct connection *connection) {
    struct state *state = &connection->state;
    size_t count = state->answered / 4;
    for (size_t i = 0; state->backwards && i < count / 2; i++) {
        unsigned char *one = state->answers + 4 * i, *other = state->answers + 4 * (count - 1 - i), kept[4];
        memcpy(kept, one, 4);
        memcpy(one, other, 4);
        memcpy(other, kept, 4);
    }
    write_all(connection, state->answers, 4 * count);
    state->answered = 0;
}

// Notes an acknowledgement.
static void answer(struct connection *connection, unsigned char type, const unsigned char *identifier) {
    struct state *state = &connection->state;
    if (!state->answers) state->answers = malloc(answers_size);
    memcpy(state->answers + state->answered, (unsigned char[]){type, 2, identifier[0], identifier[1]}, 4);
    state->answered += 4;
    if (state->answered == 4 * state->hold || state->answered > answers_size - 8) acknowledge(connection);
}

static void accept_client(struct connection *connection, const unsigned char *body) {
    struct state *state = &connection->state;
    // Behind the protocol's name stand its level, the flags and the keep alive.
    char name[32] = {0};
    size_t start = 8 + ((size_t)body[0] << 8 | body[1]);
    state->version = body[start - 6];
    if (state->version == 5) start += 1 + (size_t)body[start - 2];
    size_t length = (size_t)body[start - 2] << 8 | body[start - 1];
    memcpy(name, body + start, length < 31 ? length : 31);
    if (sscanf(name, "hold-%zu", &state->hold) != 1)
        state->backwards = sscanf(name, "back-%zu", &state->hold) == 1;
    if (state->version == 5) {
        write_all(connection, "\x20\x03\x00\x00\x00", 5);
    } else {
        write_all(connection, "\x20\x02\x00\x00", 4);
    }
}

static size_t serve(struct connection *connection) {
    struct state *state = &connection->state;
    size_t at = 0;
    while (!connection->ended) {
        size_t position = at + 1, remaining = 0, shift = 0;
        unsigned char byte = 128;
        while (byte & 128 && position < connection->count) {
            byte = connection->bytes[position++];
            remaining |= (size_t)(byte & 127) << shift;
            shift += 7;
        }
        if (byte & 128 || position + remaining > connection->count) break;
        unsigned char type = connection->bytes[at];
        unsigned char *body = connection->bytes + position;
        if ((type & 0xf0) == 0x30) {
            size_t topic = (size_t)body[0] << 8 | body[1];
            if (type & 0x06) answer(connection, type & 0x02 ? 0x40 : 0x50, body + 2 + topic);
        } else if (type == 0x62) {
            answer(connection, 0x70, body);
        } else if (type == 0x10) {
            accept_client(connection, body);
        } else if (type == 0x40) {
            state->unacknowledged--;
        } else if (type == 0xc0) {
            write_all(connection, "\xd0\x00", 2);
        } else if (type == 0xa2) {
            int is_new = state->version == 5;
            unsigned char answer[6] = {0xb0, is_new ? 4 : 2, body[0], body[1], 0, 0};
            write_all(connection, answer, is_new ? 6 : 4);
        } else if (type == 0x82) {
            subscribe(connection, body, remaining);
        } else if (type == 0xe0) {
            connection->ended = 1;
        }
        at = position + remaining;
    }
    if (state->sent < state->wanted.count) continue_traffic(connection);
    if (state->answered && !state->hold) acknowledge(connection);
    return at;
}

// What a plain C program reaches with traffic as its users send it, against the same broker.
// Usage: traffic_limit PORT VERSION publish TRAFFIC | receive TRAFFIC | owned TRAFFIC | qos2 TRAFFIC | connect COUNT
// TRAFFIC is described in traffic.h. `receive` finds the end of each packet and answers those with QoS 1; `owned` copies
// topic and payload into blocks of their own besides. `connect` opens and closes connections one after the other.
// Prints seconds, and seconds of processor time.
#include "limit.h"
#include "traffic.h"

static int version;

static int open_connection(const char *port) {
    int fd = connect_to(port);
    unsigned char answer[5];
    if (version == 5) {
        write_all(fd, (const unsigned char *)"\x10\x0e\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x01x", 16);
        read_exactly(fd, answer, 5);
    } else {
        write_all(fd, (const unsigned char *)"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01x", 15);
        read_exactly(fd, answer, 4);
    }
    return fd;
}

// Reads whole packets until `handle` has seen enough; `handle` gets each packet's first byte and body.
static unsigned char buffer[512 * 1024];

static void read_packets(int fd, long count, long (*handle)(unsigned char, const unsigned char *, size_t), void (*flush)(int)) {
    size_t have = 0;
    while (count > 0) {
        ssize_t got = recv(fd, buffer + have, sizeof buffer - have, 0);
        if (got <= 0) exit(1);
        have += (size_t)got;
        size_t at = 0;
        for (;;) {
            size_t position = at + 1, length = 0, shift = 0;
            int whole = 0;
            while (position < have && !whole) {
                unsigned char byte = buffer[position++];
                length |= (size_t)(byte & 127) << shift;
                shift += 7;
                whole = !(byte & 128);
            }
            if (!whole || position + length > have) break;
            count -= handle(buffer[at], buffer + position, length);
            at = position + length;
        }
        flush(fd);
        memmove(buffer, buffer + at, have - at);
        have -= at;
    }
}

static unsigned char answers[1 << 20];
static size_t answered;
static int copies;
static volatile unsigned char sink;

static void put_answer(unsigned char type, const unsigned char *id) {
    unsigned char *answer = answers + answered;
    answer[0] = type;
    answer[1] = 2;
    answer[2] = id[0];
    answer[3] = id[1];
    answered += 4;
}

static long receive_message(unsigned char type, const unsigned char *body, size_t size) {
    if ((type & 0xf0) != 0x30) return 0;
    size_t topic = (size_t)body[0] << 8 | body[1], at = 2 + topic;
    if (type & 6) {
        put_answer(0x40, body + at);
        at += 2;
    }
    if (version == 5) at += 1 + (size_t)body[at];
    if (copies) {
        unsigned char *name = malloc(topic), *payload = malloc(size - at + 1);
        memcpy(name, body + 2, topic);
        memcpy(payload, body + at, size - at);
        sink = name[0] ^ payload[0];
        free(name);
        free(payload);
    }
    return 1;
}

static void flush_answers(int fd) {
    if (answered) write_all(fd, answers, answered);
    answered = 0;
}

static struct traffic traffic;
static long sent, unacknowledged;

static void send_more(int fd) {
    flush_answers(fd);
    while (sent < traffic.count) {
        size_t offset, size;
        long count = next_messages(&traffic, sent, &unacknowledged, &offset, &size);
        if (count == 0) return;
        write_all(fd, traffic.bytes + offset, size);
        sent += count;
    }
}

static long take_acknowledgement(unsigned char type, const unsigned char *body, size_t size) {
    (void)size;
    if (type == 0x50) {
        put_answer(0x62, body);
        return 0;
    }
    if (type != 0x40 && type != 0x70) return 0;
    unacknowledged--;
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    version = atoi(argv[2]);
    double start, processor;
    if (!strcmp(argv[3], "connect")) {
        start = seconds(CLOCK_MONOTONIC), processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (long left = atol(argv[4]); left > 0; left--) {
            int fd = open_connection(argv[1]);
            write_all(fd, (const unsigned char *)"\xe0\x00", 2);
            close(fd);
        }
    } else {
        if (!parse_traffic(&traffic, argv[4])) return 2;
        traffic.version = version;
        int fd = open_connection(argv[1]);
        if (!strcmp(argv[3], "publish") || !strcmp(argv[3], "qos2")) {
            make_traffic(&traffic);
            start = seconds(CLOCK_MONOTONIC), processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
            send_more(fd);
            long acknowledgements = 0;
            for (long index = 0; index < traffic.count; index++)
                acknowledgements += traffic.acknowledged[index % traffic.period];
            if (acknowledgements) {
                read_packets(fd, acknowledgements, take_acknowledgement, send_more);
            } else {
                // An answer at the end: everything before it has been read.
                write_all(fd, (const unsigned char *)"\xc0\x00", 2);
                read_exactly(fd, buffer, 2);
            }
        } else {
            copies = !strcmp(argv[3], "owned");
            char filter[128];
            int length = snprintf(filter, sizeof filter, "traffic/%s", argv[4]), at = 0;
            unsigned char subscribe[160];
            subscribe[at++] = 0x82;
            subscribe[at++] = (unsigned char)(5 + length + (version == 5));
            subscribe[at++] = 0;
            subscribe[at++] = 1;
            if (version == 5) subscribe[at++] = 0;
            subscribe[at++] = 0;
            subscribe[at++] = (unsigned char)length;
            memcpy(subscribe + at, filter, (size_t)length);
            at += length;
            subscribe[at++] = 1;
            start = seconds(CLOCK_MONOTONIC), processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
            write_all(fd, subscribe, (size_t)at);
            read_packets(fd, traffic.count, receive_message, flush_answers);
        }
    }
    printf("%.9f %.9f\n", seconds(CLOCK_MONOTONIC) - start, seconds(CLOCK_PROCESS_CPUTIME_ID) - processor);
    return 0;
}

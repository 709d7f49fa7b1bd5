// How long a message takes from its publisher through a real broker back to the same program, in plain C.
// Usage: latency_limit PORT mqtt0|mqtt1|stomp COUNT
// MQTT: PUBLISH, until the message itself has arrived, and with QoS 1 also its PUBACK. STOMP: SEND, until MESSAGE has arrived.
// One message at a time. Prints the median and the 99th percentile in nanoseconds, and the processor time of each.
#include "limit.h"

static unsigned char buffer[65536];
static size_t have;

static int compare(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return difference < 0 ? -1 : difference > 0;
}

static void read_more(int fd) {
    ssize_t got = recv(fd, buffer + have, sizeof buffer - have, 0);
    if (got <= 0) exit(1);
    have += (size_t)got;
}

static void drop(size_t count) {
    memmove(buffer, buffer + count, have - count);
    have -= count;
}

// Takes one packet, and returns its first byte; the packets of this program are shorter than 128 bytes.
static unsigned char take_packet(int fd, unsigned char *id) {
    while (have < 2 || have < 2 + (size_t)buffer[1]) read_more(fd);
    unsigned char type = buffer[0];
    if ((type & 0xf6) == 0x32) {
        size_t topic = (size_t)buffer[2] << 8 | buffer[3];
        memcpy(id, buffer + 4 + topic, 2);
    }
    drop(2 + (size_t)buffer[1]);
    return type;
}

static void exchange_mqtt0(int fd) {
    static const unsigned char packet[] = "\x30\x21\x00\x07latencypppppppppppppppppppppppp";
    unsigned char id[2];
    write_all(fd, packet, sizeof packet - 1);
    take_packet(fd, id);
}

static void exchange_mqtt1(int fd) {
    static unsigned char packet[] = "\x32\x23\x00\x07latency\x00\x01pppppppppppppppppppppppp", answer[4] = {0x40, 2};
    write_all(fd, packet, sizeof packet - 1);
    for (int left = 2; left > 0; left--)
        if ((take_packet(fd, answer + 2) & 0xf0) == 0x30) write_all(fd, answer, 4);
}

static void take_frame(int fd) {
    unsigned char *end;
    while (!(end = memchr(buffer, 0, have))) read_more(fd);
    drop((size_t)(end - buffer) + 1);
    while (have > 0 && buffer[0] == '\n') drop(1);
}

static void exchange_stomp(int fd) {
    static const char frame[] = "SEND\ndestination:/topic/latency\ncontent-length:24\n\npppppppppppppppppppppppp";
    write_all(fd, (const unsigned char *)frame, sizeof frame);
    take_frame(fd);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int count = atoi(argv[3]), fd = connect_to(argv[1]), is_mqtt = !strncmp(argv[2], "mqtt", 4), qos = argv[2][4] - '0';
    unsigned char id[2];
    if (is_mqtt) {
        write_all(fd, (const unsigned char *)"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01x", 15);
        take_packet(fd, id);
        write_all(fd, (const unsigned char *)"\x82\x0c\x00\x01\x00\x07latency\x01", 14);
        take_packet(fd, id);
    } else {
        static const char hello[] = "CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n";
        write_all(fd, (const unsigned char *)hello, sizeof hello);
        take_frame(fd);
        static const char subscribe[] = "SUBSCRIBE\nid:1\ndestination:/topic/latency\nreceipt:1\n\n";
        write_all(fd, (const unsigned char *)subscribe, sizeof subscribe);
        take_frame(fd);
    }
    double *times = calloc((size_t)count, sizeof *times), processor = 0;
    for (int i = -100; i < count; i++) {
        // The first ones warm up.
        if (i == 0) processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
        double start = seconds(CLOCK_MONOTONIC);
        if (is_mqtt && qos) exchange_mqtt1(fd);
        else if (is_mqtt) exchange_mqtt0(fd);
        else exchange_stomp(fd);
        if (i >= 0) times[i] = (seconds(CLOCK_MONOTONIC) - start) * 1e9;
    }
    processor = (seconds(CLOCK_PROCESS_CPUTIME_ID) - processor) * 1e9 / count;
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("%.0f %.0f %.0f\n", times[count / 2], times[count * 99 / 100], processor);
    return 0;
}

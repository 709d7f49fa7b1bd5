// What a plain C program reaches against the same broker: the limit that the rows are measured against.
// Usage: mqtt_limit PORT publish COUNT | receive COUNT | roundtrip COUNT
// Prints seconds (publish, receive), or the median and the 99th percentile in nanoseconds (roundtrip).
#include "limit.h"

static double now(void) { return seconds(CLOCK_MONOTONIC); }

static const char topic[] = "benchmark/site-0001/line-0002/machine-0003/state";

static size_t make_publish(unsigned char *out, int qos, unsigned id) {
    size_t length = sizeof topic - 1, at = 0;
    out[at++] = (unsigned char)(0x30 | qos << 1);
    out[at++] = (unsigned char)(2 + length + (qos ? 2 : 0) + 24);
    out[at++] = 0;
    out[at++] = (unsigned char)length;
    memcpy(out + at, topic, length);
    at += length;
    if (qos) {
        out[at++] = (unsigned char)(id >> 8);
        out[at++] = (unsigned char)id;
    }
    memset(out + at, 'p', 24);
    return at + 24;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    long count = atol(argv[3]);
    int fd = connect_to(argv[1]);
    static const unsigned char hello[] = "\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01x";
    unsigned char answer[16];
    write_all(fd, hello, 15);
    read_exactly(fd, answer, 4);

    unsigned char one_message[256];
    if (!strcmp(argv[2], "publish")) {
        size_t size = make_publish(one_message, 0, 0), per_block = 65536 / size;
        unsigned char *block = malloc(per_block * size);
        for (size_t i = 0; i < per_block; i++) memcpy(block + i * size, one_message, size);
        double start = now();
        for (long left = count; left > 0;) {
            size_t batch = (size_t)left < per_block ? (size_t)left : per_block;
            write_all(fd, block, batch * size);
            left -= (long)batch;
        }
        // An acknowledged message at the end: everything before it has been read.
        write_all(fd, one_message, make_publish(one_message, 1, 1));
        read_exactly(fd, answer, 4);
        printf("%.9f\n", now() - start);
    } else if (!strcmp(argv[2], "receive")) {
        char filter[64];
        int length = snprintf(filter, sizeof filter, "flood/%ld/24", count);
        unsigned char subscribe[128] = {0x82, (unsigned char)(5 + length), 0, 1, 0, (unsigned char)length};
        memcpy(subscribe + 6, filter, (size_t)length);
        subscribe[6 + length] = 0;
        double start = now();
        write_all(fd, subscribe, (size_t)(7 + length));
        read_exactly(fd, answer, 5);
        static unsigned char buffer[256 * 1024];
        size_t have = 0;
        for (long seen = 0; seen < count;) {
            ssize_t got = recv(fd, buffer + have, sizeof buffer - have, 0);
            if (got <= 0) return 1;
            have += (size_t)got;
            size_t at = 0;
            while (at + 2 <= have && at + 2 + buffer[at + 1] <= have) {
                at += 2 + buffer[at + 1];
                seen++;
            }
            memmove(buffer, buffer + at, have - at);
            have -= at;
        }
        printf("%.9f\n", now() - start);
    } else if (!strcmp(argv[2], "window")) {
        // QoS 1, 100 in flight, what is acknowledged is replaced at once.
        unsigned char block[100 * 80];
        long sent = 0, acknowledged = 0;
        unsigned char answers[4096];
        size_t have = 0;
        double start = now();
        while (acknowledged < count) {
            size_t at = 0;
            while (sent - acknowledged < 100 && sent < count) {
                at += make_publish(block + at, 1, (unsigned)(sent % 60000 + 1));
                sent++;
            }
            if (at) write_all(fd, block, at);
            ssize_t got = recv(fd, answers + have, sizeof answers - have, 0);
            if (got <= 0) return 1;
            have += (size_t)got;
            acknowledged += (long)(have / 4);
            have %= 4;
        }
        printf("%.9f\n", now() - start);
    } else {
        double *times = malloc(sizeof(double) * (size_t)count);
        for (long i = 0; i < count; i++) {
            size_t size = make_publish(one_message, 1, (unsigned)(i % 60000 + 1));
            double start = now();
            write_all(fd, one_message, size);
            read_exactly(fd, answer, 4);
            times[i] = now() - start;
        }
        qsort(times, (size_t)count, sizeof(double), compare);
        printf("%.0f %.0f\n", times[count / 2] * 1e9, times[count * 99 / 100] * 1e9);
    }
    return 0;
}

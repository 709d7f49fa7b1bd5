// What a plain C program reaches against the same STOMP broker.
// Usage: stomp_limit PORT send COUNT | receive COUNT | receipts COUNT | connect COUNT
// Prints seconds. `send` writes 200 ready frames at a time, `receive` only counts NULs, `receipts` keeps 1,024 in flight.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void write_all(int fd, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = send(fd, bytes, count, MSG_NOSIGNAL);
        if (written <= 0) exit(1);
        bytes += written;
        count -= (size_t)written;
    }
}

static char buffer[256 * 1024];

// Reads until that many NULs have come.
static void await(int fd, long nuls) {
    while (nuls > 0) {
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0) exit(1);
        for (char *at = buffer, *end = buffer + got; (at = memchr(at, 0, (size_t)(end - at))); at++) nuls--;
    }
}

static const char body[] =
    "{\"deviceID\":\"2262EC25-E9FD-4578-BADE-4E113DE45934\",\"lat\":37.33521504,\"lng\":-122.03254905,"
    "\"ts\":\"2014-03-13T17:19:05+01:00\"}";

static size_t make_send(char *out, long receipt) {
    char line[48] = "";
    if (receipt) sprintf(line, "receipt:%ld\n", receipt);
    return (size_t)sprintf(
               out,
               "SEND\ndestination:/topic/device.2262EC25-E9FD-4578-BADE-4E113DE45934.location\n%s"
               "content-type:application/json;charset=utf-8\ncontent-length:%zu\n\n%s",
               line, sizeof body - 1, body) + 1;
}

static int open_connection(const char *port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) exit(1);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    static const char hello[] = "CONNECT\naccept-version:1.2\nhost:/\n\n";
    write_all(fd, hello, sizeof hello);
    await(fd, 1);
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    long count = atol(argv[3]);
    if (!strcmp(argv[2], "connect")) {
        double start = now();
        for (long left = count; left > 0; left--) {
            int fd = open_connection(argv[1]);
            static const char goodbye[] = "DISCONNECT\nreceipt:1\n\n";
            write_all(fd, goodbye, sizeof goodbye);
            await(fd, 1);
            close(fd);
        }
        printf("%.9f\n", now() - start);
        return 0;
    }
    int fd = open_connection(argv[1]);
    static char block[1 << 19];
    double start = now();
    if (!strcmp(argv[2], "send")) {
        size_t size = make_send(block, 0);
        for (int i = 1; i < 200; i++) memcpy(block + (size_t)i * size, block, size);
        for (long left = count; left > 0; left -= 200) write_all(fd, block, size * (size_t)(left < 200 ? left : 200));
        write_all(fd, block, make_send(block, 1));
        await(fd, 1);
    } else if (!strcmp(argv[2], "receive")) {
        size_t size = (size_t)sprintf(block, "SUBSCRIBE\nid:1\ndestination:flood/%ld\n\n", count) + 1;
        write_all(fd, block, size);
        await(fd, count);
    } else {
        long sent = 0, confirmed = 0;
        while (confirmed < count) {
            size_t at = 0;
            while (sent - confirmed < 1024 && sent < count) at += make_send(block + at, ++sent);
            if (at) write_all(fd, block, at);
            ssize_t got = recv(fd, buffer, sizeof buffer, 0);
            if (got <= 0) return 1;
            for (char *p = buffer, *end = buffer + got; (p = memchr(p, 0, (size_t)(end - p))); p++) confirmed++;
        }
    }
    printf("%.9f\n", now() - start);
    return 0;
}

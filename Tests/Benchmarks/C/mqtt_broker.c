// The broker's side of the MQTT rows: one thread, one connection at a time per process fork, never the bottleneck.
// Usage: mqtt_broker            prints its port, then serves until it is killed.
//
// It answers CONNECT, SUBSCRIBE and PINGREQ, acknowledges QoS 1, counts and drops everything else. A SUBSCRIBE whose
// filter is "flood/COUNT/PAYLOAD" is answered with COUNT messages of PAYLOAD bytes on a topic of 48 bytes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void write_all(int fd, const unsigned char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = send(fd, bytes, count, MSG_NOSIGNAL);
        if (written <= 0) _exit(0);
        bytes += written;
        count -= (size_t)written;
    }
}

static size_t make_publish(unsigned char *out, size_t payload) {
    static const char topic[] = "benchmark/site-0001/line-0002/machine-0003/state";
    size_t topic_length = sizeof topic - 1, remaining = 2 + topic_length + payload, at = 0;
    out[at++] = 0x30;
    do {
        unsigned char byte = remaining & 127;
        remaining >>= 7;
        out[at++] = remaining ? byte | 128 : byte;
    } while (remaining);
    out[at++] = (unsigned char)(topic_length >> 8);
    out[at++] = (unsigned char)topic_length;
    memcpy(out + at, topic, topic_length);
    at += topic_length;
    memset(out + at, 'p', payload);
    return at + payload;
}

static void flood(int fd, long count, size_t payload) {
    unsigned char *one = malloc(payload + 64);
    size_t size = make_publish(one, payload), per_block = 65536 / size;
    if (per_block == 0) per_block = 1;
    unsigned char *block = malloc(per_block * size);
    for (size_t i = 0; i < per_block; i++) memcpy(block + i * size, one, size);
    while (count > 0) {
        size_t now = (size_t)count < per_block ? (size_t)count : per_block;
        write_all(fd, block, now * size);
        count -= (long)now;
    }
    free(one);
    free(block);
}

static void serve(int fd) {
    static unsigned char buffer[32 << 20];
    static unsigned char answers[1 << 18];
    size_t have = 0;
    for (;;) {
        ssize_t count = recv(fd, buffer + have, sizeof buffer - have, 0);
        if (count <= 0) return;
        have += (size_t)count;
        size_t at = 0, answered = 0;
        for (;;) {
            size_t position = at + 1, remaining = 0, shift = 0;
            if (at + 2 > have) break;
            for (;;) {
                if (position >= have) goto more;
                unsigned char byte = buffer[position++];
                remaining |= (size_t)(byte & 127) << shift;
                shift += 7;
                if (!(byte & 128)) break;
            }
            if (position + remaining > have) break;
            unsigned char type = buffer[at];
            unsigned char *body = buffer + position;
            if ((type & 0xf0) == 0x30) {
                if (type & 0x06) {
                    size_t topic = (size_t)body[0] << 8 | body[1];
                    unsigned char *answer = answers + answered;
                    answer[0] = 0x40;
                    answer[1] = 2;
                    answer[2] = body[2 + topic];
                    answer[3] = body[3 + topic];
                    answered += 4;
                    if (answered > sizeof answers - 8) {
                        write_all(fd, answers, answered);
                        answered = 0;
                    }
                }
            } else if (type == 0x10) {
                write_all(fd, (const unsigned char *)"\x20\x02\x00\x00", 4);
            } else if (type == 0xc0) {
                write_all(fd, (const unsigned char *)"\xd0\x00", 2);
            } else if (type == 0x82) {
                unsigned char answer[5] = {0x90, 3, body[0], body[1], 0};
                write_all(fd, answer, 5);
                char filter[128] = {0};
                size_t length = (size_t)body[2] << 8 | body[3];
                memcpy(filter, body + 4, length < 127 ? length : 127);
                long messages;
                unsigned long payload;
                if (sscanf(filter, "flood/%ld/%lu", &messages, &payload) == 2) flood(fd, messages, payload);
            } else if (type == 0xe0) {
                return;
            }
            at = position + remaining;
        }
    more:
        if (answered) write_all(fd, answers, answered);
        // A large packet comes in many pieces, which need not move for each of them.
        if (at) memmove(buffer, buffer + at, have - at);
        have -= at;
    }
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1024)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(listener);
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            serve(fd);
            _exit(0);
        }
        close(fd);
    }
}

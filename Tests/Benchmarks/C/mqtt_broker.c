// The broker's side of the MQTT rows: one thread, one connection at a time per process fork, never the bottleneck.
// Usage: mqtt_broker            prints its port, then serves until it is killed.
//
// It answers CONNECT, SUBSCRIBE, UNSUBSCRIBE and PINGREQ, acknowledges QoS 1 and 2, counts and drops everything else. A
// SUBSCRIBE whose filter is "flood/COUNT/PAYLOAD" is answered with COUNT messages of PAYLOAD bytes on a topic of 48 bytes,
// "floods/COUNT/TOPICS" with COUNT messages of 24 bytes on "growth/x/NUMBER/y" for TOPICS numbers in turn, and
// "traffic/…" with traffic as traffic.h describes it. A client called "hold-N" gets its acknowledgements when N are due, one called "back-N" from the last to the first.
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

#include "traffic.h"

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

static void floods(int fd, long count, long topics) {
    enum { size = 2 + 2 + 16 + 24, per_block = 1000 };
    static unsigned char block[per_block * size];
    for (long done = 0; done < count;) {
        unsigned char *at = block;
        for (int i = 0; i < per_block && done < count; i++, done++, at += size) {
            memcpy(at, "\x30\x2a\0\x10growth/x/00000/y", 20);
            long number = done % topics;
            for (int digit = 17; digit > 12; digit--, number /= 10) at[digit] = (unsigned char)('0' + number % 10);
            memset(at + 20, 'p', 24);
        }
        write_all(fd, block, (size_t)(at - block));
    }
}

// The version of the connection's client, and the traffic that it asked for.
static int version = 4;
static struct traffic wanted;
static long sent, unacknowledged;

// Sends as much of the traffic as the window allows.
static void continue_traffic(int fd) {
    while (sent < wanted.count) {
        size_t offset, size;
        long count = next_messages(&wanted, sent, &unacknowledged, &offset, &size);
        if (count == 0) return;
        write_all(fd, wanted.bytes + offset, size);
        sent += count;
    }
}

// Grants every filter, and sends the messages that one asks for.
static void subscribe(int fd, const unsigned char *body, size_t size) {
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
    write_all(fd, answer, (size_t)(end - answer) + granted);
    free(answer);

    char filter[128] = {0};
    size_t length = (size_t)body[start] << 8 | body[start + 1];
    memcpy(filter, body + start + 2, length < 127 ? length : 127);
    long messages, topics;
    unsigned long payload;
    if (sscanf(filter, "flood/%ld/%lu", &messages, &payload) == 2) flood(fd, messages, payload);
    if (sscanf(filter, "floods/%ld/%ld", &messages, &topics) == 2) floods(fd, messages, topics);
    if (!strncmp(filter, "traffic/", 8) && parse_traffic(&wanted, filter + 8)) {
        wanted.version = version;
        make_traffic(&wanted);
        sent = unacknowledged = 0;
        continue_traffic(fd);
    }
}

// Sends `count` acknowledgements of four bytes, from the last to the first if they are to come so.
static void acknowledge(int fd, unsigned char *answers, size_t count, int backwards) {
    for (size_t i = 0; backwards && i < count / 2; i++) {
        unsigned char *one = answers + 4 * i, *other = answers + 4 * (count - 1 - i), kept[4];
        memcpy(kept, one, 4);
        memcpy(one, other, 4);
        memcpy(other, kept, 4);
    }
    write_all(fd, answers, 4 * count);
}

static void serve(int fd) {
    size_t hold = 0;
    int backwards = 0;
    static unsigned char buffer[32 << 20];
    static unsigned char answers[1 << 19];
    size_t have = 0, answered = 0;
    for (;;) {
        ssize_t count = recv(fd, buffer + have, sizeof buffer - have, 0);
        if (count <= 0) return;
        have += (size_t)count;
        size_t at = 0;
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
                    answer[0] = type & 0x02 ? 0x40 : 0x50;
                    answer[1] = 2;
                    answer[2] = body[2 + topic];
                    answer[3] = body[3 + topic];
                    answered += 4;
                }
            } else if (type == 0x62) {
                memcpy(answers + answered, (unsigned char[]){0x70, 2, body[0], body[1]}, 4);
                answered += 4;
            } else if (type == 0x10) {
                // Behind the protocol's name stand its level, the flags and the keep alive.
                char name[32] = {0};
                size_t start = 8 + ((size_t)body[0] << 8 | body[1]);
                version = body[start - 6];
                if (version == 5) start += 1 + (size_t)body[start - 2];
                size_t length = (size_t)body[start - 2] << 8 | body[start - 1];
                memcpy(name, body + start, length < 31 ? length : 31);
                if (sscanf(name, "hold-%zu", &hold) != 1) backwards = sscanf(name, "back-%zu", &hold) == 1;
                if (version == 5) {
                    write_all(fd, (const unsigned char *)"\x20\x03\x00\x00\x00", 5);
                } else {
                    write_all(fd, (const unsigned char *)"\x20\x02\x00\x00", 4);
                }
            } else if (type == 0x40) {
                unacknowledged--;
            } else if (type == 0xc0) {
                write_all(fd, (const unsigned char *)"\xd0\x00", 2);
            } else if (type == 0xa2) {
                unsigned char answer[6] = {0xb0, version == 5 ? 4 : 2, body[0], body[1], 0, 0};
                write_all(fd, answer, version == 5 ? 6 : 4);
            } else if (type == 0x82) {
                subscribe(fd, body, remaining);
            } else if (type == 0xe0) {
                return;
            }
            if (answered && (answered == 4 * hold || answered > sizeof answers - 8)) {
                acknowledge(fd, answers, answered / 4, backwards);
                answered = 0;
            }
            at = position + remaining;
        }
    more:
        if (sent < wanted.count) continue_traffic(fd);
        if (answered && !hold) {
            write_all(fd, answers, answered);
            answered = 0;
        }
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

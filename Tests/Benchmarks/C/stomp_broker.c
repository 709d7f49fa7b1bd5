// The broker's side of the STOMP rows: one process per connection, never the bottleneck.
// Usage: stomp_broker           prints its port, then serves until it is killed.
//
// It answers CONNECT, and every frame that has a receipt header; it counts and drops the rest. A SUBSCRIBE to
// "flood/COUNT" is answered with COUNT MESSAGE frames with the body of the location that the rows send.
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

static const char body[] =
    "{\"deviceID\":\"2262EC25-E9FD-4578-BADE-4E113DE45934\",\"lat\":37.33521504,\"lng\":-122.03254905,"
    "\"ts\":\"2014-03-13T17:19:05+01:00\"}";

static void write_all(int fd, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = send(fd, bytes, count, MSG_NOSIGNAL);
        if (written <= 0) _exit(0);
        bytes += written;
        count -= (size_t)written;
    }
}

static void flood(int fd, long count, const char *id) {
    char one[512];
    int size = snprintf(
        one, sizeof one,
        "MESSAGE\nsubscription:%s\nmessage-id:1\ndestination:/topic/device.2262EC25.location\n"
        "content-type:application/json;charset=utf-8\ncontent-length:%zu\n\n%s",
        id, sizeof body - 1, body) + 1;
    char *block = malloc((size_t)size * 200);
    for (int i = 0; i < 200; i++) memcpy(block + i * size, one, (size_t)size);
    while (count > 0) {
        long now = count < 200 ? count : 200;
        write_all(fd, block, (size_t)(now * size));
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

static void serve(int fd) {
    static char buffer[1 << 20], answers[1 << 20];
    size_t have = 0;
    for (;;) {
        ssize_t count = recv(fd, buffer + have, sizeof buffer - have, 0);
        if (count <= 0) return;
        have += (size_t)count;
        char *at = buffer, *end = buffer + have, *nul;
        size_t answered = 0;
        while ((nul = memchr(at, 0, (size_t)(end - at)))) {
            while (*at == '\n') at++;
            char value[256], id[256];
            // A client of STOMP 1.1 or newer may say STOMP instead.
            if (!strncmp(at, "CONNECT\n", 8) || !strncmp(at, "STOMP\n", 6)) {
                static const char hello[] = "CONNECTED\nversion:1.2\nheart-beat:0,0\n\n";
                write_all(fd, hello, sizeof hello);
            } else if (*at == 'S' && at[1] == 'E') {
                if (header(at, "\nreceipt:", value, sizeof value)) {
                    answered += (size_t)sprintf(answers + answered, "RECEIPT\nreceipt-id:%s\n\n", value) + 1;
                    if (answered > sizeof answers - 1024) {
                        write_all(fd, answers, answered);
                        answered = 0;
                    }
                }
            } else {
                if (header(at, "\nreceipt:", value, sizeof value))
                    answered += (size_t)sprintf(answers + answered, "RECEIPT\nreceipt-id:%s\n\n", value) + 1;
                if (answered) write_all(fd, answers, answered);
                answered = 0;
                long messages;
                if (header(at, "\ndestination:", value, sizeof value) && header(at, "\nid:", id, sizeof id) &&
                    sscanf(value, "flood/%ld", &messages) == 1)
                    flood(fd, messages, id);
            }
            at = nul + 1;
        }
        if (answered) write_all(fd, answers, answered);
        have = (size_t)(end - at);
        memmove(buffer, at, have);
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

// What the brokers of the rows share: one process and one thread serve all connections, as real brokers do, so that neither
// side of a row pays for starting a process.
//
// A program defines `struct state`, which begins as zeros for each connection, and two functions:
//   serve    takes what it can from `bytes`, returns how much that was, and sets `ended` to close the connection
//   forget   frees what the state of a connection owns
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
    int fd, ended;
    // What has arrived and was not taken.
    unsigned char *bytes;
    size_t count, room;
    struct state state;
    struct connection *next;
};

static size_t serve(struct connection *connection);
static void forget(struct state *state);

// Writes all of it, however long the client takes to read: a row has one connection that is busy.
static void write_all(struct connection *connection, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    while (count > 0 && !connection->ended) {
        ssize_t written = send(connection->fd, at, count, MSG_NOSIGNAL);
        if (written <= 0) {
            connection->ended = 1;
            return;
        }
        at += written;
        count -= (size_t)written;
    }
}

// Connections that have ended, whose memory the next ones use.
static struct connection *spare;

static struct connection *make_connection(int fd) {
    struct connection *made = spare;
    if (made) {
        spare = made->next;
    } else {
        made = calloc(1, sizeof *made);
        made->room = 1 << 20;
        made->bytes = malloc(made->room);
    }
    made->fd = fd;
    made->ended = 0;
    made->count = 0;
    memset(&made->state, 0, sizeof made->state);
    return made;
}

static void receive(struct connection *connection) {
    if (connection->count == connection->room) {
        connection->room *= 2;
        connection->bytes = realloc(connection->bytes, connection->room);
    }
    ssize_t got = recv(connection->fd, connection->bytes + connection->count, connection->room - connection->count, 0);
    if (got > 0) {
        connection->count += (size_t)got;
        size_t taken = serve(connection);
        // A large packet comes in many pieces, which need not move for each of them.
        if (taken) memmove(connection->bytes, connection->bytes + taken, connection->count - taken);
        connection->count -= taken;
    } else {
        connection->ended = 1;
    }
    if (!connection->ended) return;
    close(connection->fd);
    forget(&connection->state);
    connection->next = spare;
    spare = connection;
}

// Prints its port, then serves until it is killed.
int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int listener = socket(AF_INET, SOCK_STREAM, 0), poller = epoll_create1(0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1024)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[256];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr) {
                receive(events[i].data.ptr);
                continue;
            }
            int fd = accept(listener, NULL, NULL);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            event.data.ptr = make_connection(fd);
            epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
        }
    }
}

// Holds thousands of MQTT connections that do next to nothing: answers CONNECT, PINGREQ, SUBSCRIBE with one filter, and one message of QoS 1 at a
// time for each of them, one thread for all.
// Usage: idle_broker            prints its port, then serves until it is killed.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    int listener = socket(AF_INET, SOCK_STREAM, 0), poller = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                event.data.fd = accept(listener, NULL, NULL);
                if (event.data.fd >= 0) epoll_ctl(poller, EPOLL_CTL_ADD, event.data.fd, &event);
                continue;
            }
            // Idle clients send one small packet at a time.
            unsigned char packet[4096];
            ssize_t got = recv(fd, packet, sizeof packet, 0);
            if (got <= 0) {
                close(fd);
            } else if (packet[0] == 0x10) {
                send(fd, "\x20\x02\x00\x00", 4, MSG_NOSIGNAL);
            } else if (packet[0] == 0x32) {
                size_t topic = (size_t)packet[2] << 8 | packet[3];
                unsigned char answer[4] = {0x40, 2, packet[4 + topic], packet[5 + topic]};
                send(fd, answer, 4, MSG_NOSIGNAL);
            } else if (packet[0] == 0x82) {
                unsigned char answer[5] = {0x90, 3, packet[2], packet[3], 0};
                send(fd, answer, 5, MSG_NOSIGNAL);
            } else if (packet[0] == 0xc0) {
                send(fd, "\xd0\x00", 2, MSG_NOSIGNAL);
            }
        }
    }
}

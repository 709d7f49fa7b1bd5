#define _GNU_SOURCE
#include "CMessagingPosix.h"

#if defined(__linux__)
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#if !defined(__ANDROID__)
int epoll_wait_nanoseconds(int epoll, struct epoll_event *events, int maximum, long long nanoseconds) {
    // The number is the same on every architecture; the kernel takes 64-bit times on all of them.
    const long epoll_pwait2_number = 441;
    struct {
        long long seconds;
        long long nanoseconds;
    } time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    return (int)syscall(epoll_pwait2_number, epoll, events, maximum, &time, NULL, (size_t)0);
}
#endif

int make_clock_change_descriptor(void) {
    int descriptor = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    // The last moment that a time_t has.
    struct itimerspec time = {.it_value = {.tv_sec = (time_t)(~0ULL >> (65 - 8 * sizeof(time_t)))}};
    if (descriptor >= 0) timerfd_settime(descriptor, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &time, NULL);
    return descriptor;
}

void sleep_precisely(void) {
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
}
#endif

#ifndef CPOSIX_H
#define CPOSIX_H

// What the toolchain's Glibc module leaves out or cannot call. No logic lives here.
#if defined(__linux__)
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

// GNU extensions: declared here because the Glibc module is built without _GNU_SOURCE.
int accept4(int descriptor, struct sockaddr *address, socklen_t *size, int flags);
int pthread_setname_np(pthread_t thread, const char *name);

#if !defined(__ANDROID__)
// epoll_pwait2 without a signal mask, for C libraries that do not have it yet. Not for Android: before version 15 the system
// kills an app for this call.
int epoll_wait_nanoseconds(int epoll, struct epoll_event *events, int maximum, long long nanoseconds);
#endif

// A descriptor that is ready when the time of day is set, and when the system wakes from sleep; -1 with errno set.
int make_clock_change_descriptor(void);

// Lets the calling thread sleep to the microsecond rather than to the fifty that Linux allows itself.
void sleep_precisely(void);
#endif

#endif

#ifndef CPOSIX_H
#define CPOSIX_H

// What the toolchain's Glibc module leaves out. No logic lives here.
#if defined(__linux__)
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

// GNU extensions: declared here because the Glibc module is built without _GNU_SOURCE.
int accept4(int descriptor, struct sockaddr *address, socklen_t *size, int flags);
int pthread_setname_np(pthread_t thread, const char *name);
#endif

#endif

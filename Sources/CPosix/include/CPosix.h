#ifndef CPOSIX_H
#define CPOSIX_H

// What the Glibc module of the toolchain leaves out. No logic lives here.
#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#endif

#endif

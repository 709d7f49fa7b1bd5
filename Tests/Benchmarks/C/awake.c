// Keeps all processors awake without taking them from anybody: a core that sleeps takes tens of microseconds to wake, which
// is most of what a single message at a time takes on an idle machine.
// Usage: awake                  prints how many threads it has, then runs until it is killed.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *spin(void *argument) {
    struct sched_param none = {0};
    // Whatever else wants to run goes first.
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
    for (;;) __asm__ volatile("");
    return argument;
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t thread;
    for (long i = 1; i < count; i++) pthread_create(&thread, NULL, spin, NULL);
    printf("%ld\n", count);
    fflush(stdout);
    spin(NULL);
}

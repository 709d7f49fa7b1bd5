// What the peers in C have in common: the modes, and counting what has come. Each of them brings the first four functions
// below, and calls add() from its library's threads.
// Usage: peer PORT publish COUNT | window COUNT | receive COUNT | roundtrip COUNT | latency0 COUNT | latency1 COUNT |
//             connect COUNT
// Prints seconds, or the median and the 99th percentile in nanoseconds (roundtrip, and through a real broker: latency).
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Connects, and adds to `connected` when that is done.
static void start(const char *port);
// Publishes `payload` to `topic`; adds to `acknowledged` when the library has done with it, whatever the QoS.
static void publish(int qos);
// Subscribes; adds to `received` for each message.
static void subscribe(const char *filter, int qos);
// Ends the connection, and frees what belongs to it.
static void finish(void);

static const char topic[] = "benchmark/site-0001/line-0002/machine-0003/state";
static char payload[24];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static long connected, acknowledged, received;
// What the main thread waits for: the counter, and the value at which it is woken.
static long *awaited_counter, awaited_value;

// A peer that cannot go on says why, rather than wait for ever.
static void give_up(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    _Exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void add(long *counter) {
    pthread_mutex_lock(&lock);
    // Waking the main thread for each message would slow the library down.
    if (++*counter >= awaited_value && counter == awaited_counter) pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void await(const char *what, long *counter, long value) {
    pthread_mutex_lock(&lock);
    awaited_counter = counter;
    awaited_value = value;
    while (*counter < value) {
        long before = *counter;
        struct timespec limit;
        clock_gettime(CLOCK_MONOTONIC, &limit);
        limit.tv_sec += 20;
        if (pthread_cond_timedwait(&changed, &lock, &limit) && *counter == before)
            give_up("%ld of %ld %s, and none for 20 seconds", before, value, what);
    }
    pthread_mutex_unlock(&lock);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Takes `count` times, prints the median and the 99th percentile.
static void measure(long count, void (*exchange)(long)) {
    double *times = malloc((size_t)count * sizeof *times);
    for (long i = 0; i < count; i++) {
        double sent = now();
        exchange(i + 1);
        times[i] = (now() - sent) * 1e9;
    }
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("%.0f %.0f\n", times[count / 2], times[count * 99 / 100]);
}

static void round_trip(long number) {
    publish(1);
    await("acknowledged", &acknowledged, number);
}

static void pass0(long number) {
    publish(0);
    await("received", &received, number);
}

static void pass1(long number) {
    publish(1);
    await("acknowledged", &acknowledged, number);
    await("received", &received, number);
}

static void run(const char *mode, long count) {
    double begin = now();
    if (!strcmp(mode, "publish")) {
        for (long i = 0; i < count; i++) publish(0);
        // An acknowledged message at the end: everything before it has been read.
        publish(1);
        await("acknowledged", &acknowledged, count + 1);
    } else if (!strcmp(mode, "window")) {
        for (long i = 0; i < count; i++) {
            if (i >= 100) await("acknowledged", &acknowledged, i - 99);
            publish(1);
        }
        await("acknowledged", &acknowledged, count);
    } else if (!strcmp(mode, "receive")) {
        char filter[64];
        snprintf(filter, sizeof filter, "flood/%ld/24", count);
        subscribe(filter, 0);
        await("received", &received, count);
    } else if (!strncmp(mode, "latency", 7)) {
        subscribe(topic, mode[7] - '0');
        measure(count, mode[7] == '0' ? pass0 : pass1);
        return;
    } else {
        measure(count, round_trip);
        return;
    }
    printf("%.9f\n", now() - begin);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    memset(payload, 'p', sizeof payload);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    long count = atol(argv[3]);
    if (!strcmp(argv[2], "connect")) {
        double begin = now();
        for (long i = 0; i < count; i++) {
            start(argv[1]);
            await("connected", &connected, i + 1);
            finish();
        }
        printf("%.9f\n", now() - begin);
        return 0;
    }
    start(argv[1]);
    await("connected", &connected, 1);
    run(argv[2], count);
    fflush(stdout);
    finish();
    return 0;
}

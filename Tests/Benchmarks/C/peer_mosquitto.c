// libmosquitto as people use it, in the places of our rows.
// Usage: peer_mosquitto PORT publish COUNT | window COUNT | receive COUNT | roundtrip COUNT
// Prints seconds, or the median and the 99th percentile in nanoseconds (roundtrip).
#include <mosquitto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char topic[] = "benchmark/site-0001/line-0002/machine-0003/state";
static char payload[24];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long connected, acknowledged, received;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void add(long *counter) {
    pthread_mutex_lock(&lock);
    ++*counter;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void await(long *counter, long value) {
    pthread_mutex_lock(&lock);
    while (*counter < value) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void on_connect(struct mosquitto *client, void *context, int code) {
    (void)client, (void)context;
    if (code == 0) add(&connected);
}

static void on_publish(struct mosquitto *client, void *context, int id) {
    (void)client, (void)context, (void)id;
    add(&acknowledged);
}

static void on_message(struct mosquitto *client, void *context, const struct mosquitto_message *message) {
    (void)client, (void)context, (void)message;
    add(&received);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    long count = atol(argv[3]);
    memset(payload, 'p', sizeof payload);
    mosquitto_lib_init();
    struct mosquitto *client = mosquitto_new("peer", true, NULL);
    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_publish_callback_set(client, on_publish);
    mosquitto_message_callback_set(client, on_message);
    mosquitto_max_inflight_messages_set(client, 100);
    if (mosquitto_connect(client, "127.0.0.1", atoi(argv[1]), 60)) return 1;
    mosquitto_loop_start(client);
    await(&connected, 1);
    double start = now();
    if (!strcmp(argv[2], "publish")) {
        for (long i = 0; i < count; i++) mosquitto_publish(client, NULL, topic, sizeof payload, payload, 0, false);
        await(&acknowledged, count);
        mosquitto_publish(client, NULL, topic, sizeof payload, payload, 1, false);
        await(&acknowledged, count + 1);
        printf("%.9f\n", now() - start);
    } else if (!strcmp(argv[2], "window")) {
        for (long i = 0; i < count; i++) {
            if (i >= 100) await(&acknowledged, i - 99);
            mosquitto_publish(client, NULL, topic, sizeof payload, payload, 1, false);
        }
        await(&acknowledged, count);
        printf("%.9f\n", now() - start);
    } else if (!strcmp(argv[2], "receive")) {
        char filter[64];
        snprintf(filter, sizeof filter, "flood/%ld/24", count);
        mosquitto_subscribe(client, NULL, filter, 0);
        await(&received, count);
        printf("%.9f\n", now() - start);
    } else {
        double *times = malloc((size_t)count * sizeof *times);
        for (long i = 0; i < count; i++) {
            double begin = now();
            mosquitto_publish(client, NULL, topic, sizeof payload, payload, 1, false);
            await(&acknowledged, i + 1);
            times[i] = (now() - begin) * 1e9;
        }
        qsort(times, (size_t)count, sizeof *times, compare);
        printf("%.0f %.0f\n", times[count / 2], times[count * 99 / 100]);
    }
    return 0;
}

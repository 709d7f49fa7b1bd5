// Paho's asynchronous C client as people use it, in the places of our rows.
// Usage: peer_paho PORT publish COUNT | window COUNT | receive COUNT | roundtrip COUNT
// Prints seconds, or the median and the 99th percentile in nanoseconds (roundtrip).
#include <MQTTAsync.h>
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
static MQTTAsync client;

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

static void on_connect(void *context, MQTTAsync_successData *data) {
    (void)context, (void)data;
    add(&connected);
}

static void on_publish(void *context, MQTTAsync_successData *data) {
    (void)context, (void)data;
    add(&acknowledged);
}

static int on_message(void *context, char *name, int length, MQTTAsync_message *message) {
    (void)context, (void)length;
    MQTTAsync_freeMessage(&message);
    MQTTAsync_free(name);
    add(&received);
    return 1;
}

static void publish(int qos) {
    MQTTAsync_responseOptions options = MQTTAsync_responseOptions_initializer;
    options.onSuccess = on_publish;
    while (MQTTAsync_send(client, topic, sizeof payload, payload, qos, 0, &options) != MQTTASYNC_SUCCESS) {
        struct timespec pause = {.tv_nsec = 100000};
        nanosleep(&pause, NULL);
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    long count = atol(argv[3]);
    char address[64];
    snprintf(address, sizeof address, "tcp://127.0.0.1:%s", argv[1]);
    memset(payload, 'p', sizeof payload);
    MQTTAsync_create(&client, address, "peer", MQTTCLIENT_PERSISTENCE_NONE, NULL);
    MQTTAsync_setCallbacks(client, NULL, NULL, on_message, NULL);
    MQTTAsync_connectOptions options = MQTTAsync_connectOptions_initializer;
    options.onSuccess = on_connect;
    options.maxInflight = 100;
    if (MQTTAsync_connect(client, &options) != MQTTASYNC_SUCCESS) return 1;
    await(&connected, 1);
    double start = now();
    if (!strcmp(argv[2], "publish")) {
        for (long i = 0; i < count; i++) publish(0);
        publish(1);
        await(&acknowledged, count + 1);
        printf("%.9f\n", now() - start);
    } else if (!strcmp(argv[2], "window")) {
        for (long i = 0; i < count; i++) {
            if (i >= 100) await(&acknowledged, i - 99);
            publish(1);
        }
        await(&acknowledged, count);
        printf("%.9f\n", now() - start);
    } else if (!strcmp(argv[2], "receive")) {
        char filter[64];
        snprintf(filter, sizeof filter, "flood/%ld/24", count);
        MQTTAsync_responseOptions response = MQTTAsync_responseOptions_initializer;
        MQTTAsync_subscribe(client, filter, 0, &response);
        await(&received, count);
        printf("%.9f\n", now() - start);
    } else {
        double *times = malloc((size_t)count * sizeof *times);
        for (long i = 0; i < count; i++) {
            double begin = now();
            publish(1);
            await(&acknowledged, i + 1);
            times[i] = (now() - begin) * 1e9;
        }
        qsort(times, (size_t)count, sizeof *times, compare);
        printf("%.0f %.0f\n", times[count / 2], times[count * 99 / 100]);
    }
    return 0;
}

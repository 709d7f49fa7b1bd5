// Paho's asynchronous C client as people use it, in the places of our rows.
#include "peer.h"

#include <MQTTAsync.h>

static MQTTAsync client;

static void on_connect(void *context, MQTTAsync_successData *data) {
    (void)context, (void)data;
    add(&connected);
}

static void on_failure(void *context, MQTTAsync_failureData *data) {
    give_up("%s failed: %d %s", (const char *)context, data ? data->code : 0,
            data && data->message ? data->message : "");
}

static void on_lost(void *context, char *cause) {
    (void)context;
    give_up("connection lost: %s", cause ? cause : "no reason given");
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

static void check(const char *what, int code) {
    if (code != MQTTASYNC_SUCCESS) give_up("%s: %s", what, MQTTAsync_strerror(code));
}

static void start(const char *port) {
    char address[64];
    snprintf(address, sizeof address, "tcp://127.0.0.1:%s", port);
    check("creating", MQTTAsync_create(&client, address, "peer", MQTTCLIENT_PERSISTENCE_NONE, NULL));
    check("setting up", MQTTAsync_setCallbacks(client, NULL, on_lost, on_message, NULL));
    MQTTAsync_connectOptions options = MQTTAsync_connectOptions_initializer;
    options.onSuccess = on_connect;
    options.onFailure = on_failure;
    options.context = "connecting";
    options.maxInflight = 100;
    check("connecting", MQTTAsync_connect(client, &options));
}

static void publish(int qos) {
    MQTTAsync_responseOptions options = MQTTAsync_responseOptions_initializer;
    options.onSuccess = on_publish;
    options.onFailure = on_failure;
    options.context = "publishing";
    for (;;) {
        int code = MQTTAsync_send(client, topic, sizeof payload, payload, qos, 0, &options);
        // Both pass: the library's queue is full, or all packet identifiers are taken.
        if (code != MQTTASYNC_MAX_BUFFERED_MESSAGES && code != MQTTASYNC_NO_MORE_MSGIDS) {
            check("publishing", code);
            return;
        }
        struct timespec pause = {.tv_nsec = 100000};
        nanosleep(&pause, NULL);
    }
}

static void subscribe(const char *filter, int qos) {
    MQTTAsync_responseOptions options = MQTTAsync_responseOptions_initializer;
    options.onFailure = on_failure;
    options.context = "subscribing";
    check("subscribing", MQTTAsync_subscribe(client, filter, qos, &options));
}

static long ended;

static void on_disconnect(void *context, MQTTAsync_successData *data) {
    (void)context, (void)data;
    add(&ended);
}

static void finish(void) {
    static long count;
    MQTTAsync_disconnectOptions options = MQTTAsync_disconnectOptions_initializer;
    options.onSuccess = on_disconnect;
    check("disconnecting", MQTTAsync_disconnect(client, &options));
    await("disconnected", &ended, ++count);
    MQTTAsync_destroy(&client);
}

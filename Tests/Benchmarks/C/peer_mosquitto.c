// libmosquitto as people use it, in the places of our rows.
#include "peer.h"

#include <mosquitto.h>

static struct mosquitto *client;

static void on_connect(struct mosquitto *which, void *context, int code) {
    (void)which, (void)context;
    if (code) give_up("refused: %s", mosquitto_connack_string(code));
    add(&connected);
}

static void on_disconnect(struct mosquitto *which, void *context, int code) {
    (void)which, (void)context;
    if (code) give_up("connection lost: %s", mosquitto_strerror(code));
}

static void on_publish(struct mosquitto *which, void *context, int id) {
    (void)which, (void)context, (void)id;
    add(&acknowledged);
}

static void on_message(struct mosquitto *which, void *context, const struct mosquitto_message *message) {
    (void)which, (void)context, (void)message;
    add(&received);
}

static void check(int code) {
    if (code) give_up("libmosquitto: %s", mosquitto_strerror(code));
}

static void start(const char *port) {
    mosquitto_lib_init();
    client = mosquitto_new("peer", true, NULL);
    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_disconnect_callback_set(client, on_disconnect);
    mosquitto_publish_callback_set(client, on_publish);
    mosquitto_message_callback_set(client, on_message);
    mosquitto_max_inflight_messages_set(client, 100);
    mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    check(mosquitto_connect(client, "127.0.0.1", atoi(port), 60));
    check(mosquitto_loop_start(client));
}

static void publish(int qos) {
    check(mosquitto_publish(client, NULL, topic, sizeof payload, payload, qos, false));
}

static void subscribe(const char *filter, int qos) { check(mosquitto_subscribe(client, NULL, filter, qos)); }

static void finish(void) {
    mosquitto_disconnect(client);
    mosquitto_loop_stop(client, false);
    mosquitto_destroy(client);
}

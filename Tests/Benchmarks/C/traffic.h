// Traffic as the rows describe it, made in the same way by the broker and by the plain C program.
//
// A description is "COUNT/TOPICS/PAYLOAD/QOS/PROPERTIES/WINDOW":
//   COUNT       messages in all
//   TOPICS      topics in turn, of 16 bytes each
//   PAYLOAD     bytes of each payload, or -1 for 0 to 4,096 bytes
//   QOS         0, 1 or 2, or -1 for QoS 0 and 1 in turn
//   PROPERTIES  0 for none, 1 for two user properties in each message (36 bytes), -1 for two in every other message
//   WINDOW      messages with QoS 1 or 2 that may be unacknowledged
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct traffic {
    long count, topics, payload, qos, properties, window;
    int version;
    // One period of the traffic, ready to be written, and where each of its messages begins.
    unsigned char *bytes;
    size_t *starts;
    // Whether each message needs an acknowledgement.
    unsigned char *acknowledged;
    long period;
};

static int parse_traffic(struct traffic *traffic, const char *text) {
    return sscanf(
               text, "%ld/%ld/%ld/%ld/%ld/%ld", &traffic->count, &traffic->topics, &traffic->payload, &traffic->qos,
               &traffic->properties, &traffic->window) == 6;
}

static size_t traffic_payload(const struct traffic *traffic, long index) {
    if (traffic->payload >= 0) return (size_t)traffic->payload;
    return ((uint32_t)index * 2654435761u >> 13) % 4097;
}

static int traffic_qos(const struct traffic *traffic, long index) {
    return traffic->qos >= 0 ? (int)traffic->qos : (int)(index & 1);
}

static int traffic_properties(const struct traffic *traffic, long index) {
    return traffic->properties >= 0 ? (int)traffic->properties : (int)(index >> 1 & 1);
}

static unsigned char *put_variable(unsigned char *out, size_t length) {
    do {
        unsigned char byte = length & 127;
        length >>= 7;
        *out++ = length ? byte | 128 : byte;
    } while (length);
    return out;
}

// Writes one PUBLISH and returns its end.
static unsigned char *put_message(const struct traffic *traffic, unsigned char *out, long index, unsigned id) {
    static const unsigned char properties[] = "\x26\0\6source\0\7sensor7\x26\0\6region\0\7north-1";
    enum { properties_size = 36 };
    size_t payload = traffic_payload(traffic, index);
    int qos = traffic_qos(traffic, index), has_properties = traffic_properties(traffic, index);
    size_t size = 2 + 16 + (qos ? 2 : 0) + payload;
    if (traffic->version == 5) size += 1 + (has_properties ? properties_size : 0);
    *out++ = (unsigned char)(0x30 | qos << 1);
    out = put_variable(out, size);
    long number = index % traffic->topics;
    memcpy(out, "\0\x10growth/x/00000/y", 18);
    for (int digit = 15; digit > 10; digit--, number /= 10) out[digit] = (unsigned char)('0' + number % 10);
    out += 18;
    if (qos) {
        *out++ = (unsigned char)(id >> 8);
        *out++ = (unsigned char)id;
    }
    if (traffic->version == 5) {
        *out++ = has_properties ? properties_size : 0;
        if (has_properties) {
            memcpy(out, properties, properties_size);
            out += properties_size;
        }
    }
    memset(out, 'p', payload);
    return out + payload;
}

// Makes one period: as many messages as there are topics, and at least 1,000.
static void make_traffic(struct traffic *traffic) {
    traffic->period = traffic->topics;
    while (traffic->period < 1000) traffic->period += traffic->topics;
    // An even number, so that what comes in turn continues from one period to the next.
    if (traffic->period % 4) traffic->period *= 4;
    size_t most = (size_t)traffic->period * ((traffic->payload < 0 ? 4096 : (size_t)traffic->payload) + 80);
    traffic->bytes = malloc(most);
    traffic->starts = malloc((size_t)(traffic->period + 1) * sizeof *traffic->starts);
    traffic->acknowledged = malloc((size_t)traffic->period);
    unsigned char *end = traffic->bytes;
    unsigned id = 0;
    for (long index = 0; index < traffic->period; index++) {
        traffic->starts[index] = (size_t)(end - traffic->bytes);
        traffic->acknowledged[index] = traffic_qos(traffic, index) > 0;
        if (traffic->acknowledged[index]) id++;
        end = put_message(traffic, end, index, id);
    }
    traffic->starts[traffic->period] = (size_t)(end - traffic->bytes);
}

static void forget_traffic(struct traffic *traffic) {
    free(traffic->bytes);
    free(traffic->starts);
    free(traffic->acknowledged);
    traffic->bytes = NULL;
    traffic->starts = NULL;
    traffic->acknowledged = NULL;
}

// The next messages from number `sent` on that may be written while `unacknowledged` are under way, at most 256 KiB of
// them and none beyond the end of a period. Returns how many there are, and adds those to be acknowledged.
static long next_messages(const struct traffic *traffic, long sent, long *unacknowledged, size_t *offset, size_t *size) {
    long first = sent % traffic->period, index = first;
    *offset = traffic->starts[first];
    while (index < traffic->period && sent + index - first < traffic->count &&
           traffic->starts[index + 1] - *offset <= 256 * 1024 + 4200 &&
           (!traffic->acknowledged[index] || *unacknowledged < traffic->window)) {
        *unacknowledged += traffic->acknowledged[index];
        index++;
    }
    *size = traffic->starts[index] - *offset;
    return index - first;
}

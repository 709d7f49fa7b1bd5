// Counts the allocations of the program that it is preloaded into, one counter for each thread so that counting costs
// next to nothing. `allocation_count()` adds them up.
#include <stdatomic.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

enum { slots = 4096 };
static struct {
    _Atomic unsigned long count;
    char padding[56];
} counters[slots];
static atomic_uint used;
static __thread unsigned mine __attribute__((tls_model("initial-exec")));

static inline void count(void) {
    // Threads beyond the last slot share slot 0, whose counts may be lost.
    if (mine == 0) {
        unsigned next = atomic_fetch_add(&used, 1) + 1;
        mine = next < slots ? next : slots;
    }
    _Atomic unsigned long *counter = &counters[mine % slots].count;
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

unsigned long allocation_count(void) {
    unsigned long sum = 0;
    for (unsigned i = 0; i < slots; i++) sum += atomic_load_explicit(&counters[i].count, memory_order_relaxed);
    return sum;
}

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    count();
    return __libc_realloc(old, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    count();
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : 12;
}

void *aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

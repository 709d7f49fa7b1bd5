// Counts the allocations and the system calls of the program that it is preloaded into, one counter for each thread so that
// counting costs next to nothing. `allocation_count()` and `system_call_count()` add them up.
//
// The system calls are those by which a client uses sockets and waits for them. Those by which threads wait for each other
// are left out: how many there are depends on the machine.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

enum { slots = 4096 };
enum kind { allocations, system_calls, kinds };
static struct {
    _Atomic unsigned long counts[kinds];
    char padding[64 - kinds * sizeof(unsigned long)];
} counters[slots];
static atomic_uint used;
static __thread unsigned mine __attribute__((tls_model("initial-exec")));

static inline void count(enum kind kind) {
    // Threads beyond the last slot share slot 0, whose counts may be lost.
    if (mine == 0) {
        unsigned next = atomic_fetch_add(&used, 1) + 1;
        mine = next < slots ? next : slots;
    }
    _Atomic unsigned long *counter = &counters[mine % slots].counts[kind];
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

static unsigned long sum(enum kind kind) {
    unsigned long sum = 0;
    for (unsigned i = 0; i < slots; i++) sum += atomic_load_explicit(&counters[i].counts[kind], memory_order_relaxed);
    return sum;
}

unsigned long allocation_count(void) { return sum(allocations); }
unsigned long system_call_count(void) { return sum(system_calls); }

void *malloc(size_t size) {
    count(allocations);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count(allocations);
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    count(allocations);
    return __libc_realloc(old, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    count(allocations);
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : 12;
}

void *aligned_alloc(size_t alignment, size_t size) {
    count(allocations);
    return __libc_memalign(alignment, size);
}

// A system call whose arguments all fit into registers of the machine: on 64-bit systems they can be passed on as they are.
#define COUNTED(name)                                                                                   \
    long name(long a, long b, long c, long d, long e, long f) {                                         \
        static long (*_Atomic next)(long, long, long, long, long, long);                                \
        long (*known)(long, long, long, long, long, long) = next;                                       \
        if (!known) next = known = (long (*)(long, long, long, long, long, long))dlsym(RTLD_NEXT, #name); \
        count(system_calls);                                                                            \
        return known(a, b, c, d, e, f);                                                                 \
    }

COUNTED(accept4)
COUNTED(bind)
COUNTED(close)
COUNTED(connect)
COUNTED(epoll_ctl)
COUNTED(epoll_wait)
COUNTED(getpeername)
COUNTED(getsockname)
COUNTED(getsockopt)
COUNTED(ioctl)
COUNTED(listen)
COUNTED(poll)
COUNTED(read)
COUNTED(recv)
COUNTED(recvmsg)
COUNTED(send)
COUNTED(sendmsg)
COUNTED(setsockopt)
COUNTED(shutdown)
COUNTED(socket)
COUNTED(write)
COUNTED(writev)

// Of those without a function of their own only epoll_pwait2 counts.
long syscall(long number, long a, long b, long c, long d, long e, long f) {
    static long (*_Atomic next)(long, long, long, long, long, long, long);
    long (*known)(long, long, long, long, long, long, long) = next;
    if (!known) next = known = (long (*)(long, long, long, long, long, long, long))dlsym(RTLD_NEXT, "syscall");
    if (number == 441) count(system_calls);
    return known(number, a, b, c, d, e, f);
}

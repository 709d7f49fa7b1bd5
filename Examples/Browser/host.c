// Seeds of hash tables, which protect from nothing here: a page's only peer is its own broker.
#include <stddef.h>
#include <stdint.h>

void arc4random_buf(void *memory, size_t count) {
    for (uint8_t *target = memory; count--; target++) *target = (uint8_t)(count * 167 + 13);
}

int putchar(int character) { return character; }
uintptr_t __stack_chk_guard = 0x5A17C0DE;
_Noreturn void __stack_chk_fail(void) { __builtin_trap(); }

// The product of two numbers of 128 bits, which WebAssembly has no instruction for.
__int128 __multi3(__int128 one, __int128 other) {
    const uint64_t low = 0xFFFFFFFF;
    uint64_t a = (uint64_t)one, b = (uint64_t)other, middle = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32);
    uint64_t rest = (a & low) * (b >> 32) + (middle & low);
    uint64_t high = (a >> 32) * (b >> 32) + (middle >> 32) + (rest >> 32);
    high += a * (uint64_t)(other >> 64) + (uint64_t)(one >> 64) * b;
    return (__int128)((unsigned __int128)high << 64 | (a * b));
}

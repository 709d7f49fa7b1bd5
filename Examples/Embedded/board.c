// The board's time, its serial line and its switch.
#include "board.h"

// The counter of the core-local interruptor: ten million ticks a second.
int64_t board_time(void) {
    volatile uint32_t *counter = (uint32_t *)0x0200BFF8;
    uint32_t high, low;
    do high = counter[1], low = counter[0]; while (high != counter[1]);
    return ((int64_t)high << 32 | low) * 100;
}

// Seeds of hash tables. A board with keys to keep has a generator of random numbers; this one has a clock.
void arc4random_buf(void *memory, size_t count) {
    static uint32_t state = 1;
    for (uint8_t *target = memory; count--; *target++ = (uint8_t)(state >> 24))
        state = (state ^ (uint32_t)board_time()) * 1664525 + 1013904223;
}

// The serial line: a 16550.
static volatile uint8_t *const serial = (uint8_t *)0x10000000;
int board_read(void) { return serial[5] & 1 ? serial[0] : -1; }
void board_write(uint8_t byte) {
    while (!(serial[5] & 0x20)) {}
    serial[0] = byte;
}
int putchar(int character) {
    board_write((uint8_t)character);
    return character;
}

// Sleeps for a millisecond: the timer's interrupt is pending then, which ends `wfi`, and is not taken.
void board_rest(void) {
    volatile uint32_t *alarm = (uint32_t *)0x02004000;
    int64_t time = board_time() / 100 + 10000;
    alarm[1] = 0xFFFFFFFF, alarm[0] = (uint32_t)time, alarm[1] = (uint32_t)(time >> 32);
    __asm__ volatile("csrs mie, %0\nwfi" : : "r"(0x80));
}

// The board's switch, which ends QEMU: with 0, or with a number that a trap leaves.
_Noreturn void leave(uint32_t code) {
    *(volatile uint32_t *)0x00100000 = code ? code << 16 | 0x3333 : 0x5555;
    for (;;) {}
}

_Noreturn void trapped(uint32_t cause, uint32_t where) {
    for (const char *text = "\ntrapped at "; *text; text++) putchar(*text);
    for (int shift = 28; shift >= 0; shift -= 4) putchar("0123456789abcdef"[where >> shift & 15]);
    putchar('\n');
    leave(cause + 1);
}

// Counts of references, as the optimizer of the linker asks for them: one processor without interrupts needs no more.
uint32_t load(uint32_t *count, int order) __asm__("__atomic_load_4");
uint32_t load(uint32_t *count, int order) { return (void)order, *count; }
void store(uint32_t *count, uint32_t value, int order) __asm__("__atomic_store_4");
void store(uint32_t *count, uint32_t value, int order) { (void)order, *count = value; }
uint32_t add(uint32_t *count, uint32_t value, int order) __asm__("__atomic_fetch_add_4");
uint32_t add(uint32_t *count, uint32_t value, int order) { return (void)order, (*count += value) - value; }
uint32_t subtract(uint32_t *count, uint32_t value, int order) __asm__("__atomic_fetch_sub_4");
uint32_t subtract(uint32_t *count, uint32_t value, int order) { return (void)order, (*count -= value) + value; }

uintptr_t __stack_chk_guard = 0x5A17C0DE;
_Noreturn void __stack_chk_fail(void) { leave(99); }

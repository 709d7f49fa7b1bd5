// What Swift asks of any machine: memory from one fixed arena, and some functions of a C library.
#include "memory.h"
#include <stdint.h>

#ifndef ARENA
#define ARENA (32 * 1024)
#endif

// All memory that the program ever has: a list of free blocks by address, of which the first that is large enough is
// taken, and neighbours are joined. A block's size stands before it.
typedef struct Block { size_t size; struct Block *next; } Block;
static _Alignas(16) uint8_t arena[ARENA];
static Block *unused;
static size_t taken, peak;

size_t memory_peak(void) { return peak; }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    if (!peak) {
        unused = (Block *)arena;
        *unused = (Block){ARENA, NULL};
    }
    size = (size + 31) & ~(size_t)15;
    for (Block **link = &unused; *link && alignment <= 16; link = &(*link)->next) {
        Block *block = *link;
        if (block->size < size) continue;
        if (block->size >= size + 32) {
            Block *rest = (Block *)((uint8_t *)block + size);
            *rest = (Block){block->size - size, block->next};
            block->size = size;
            *link = rest;
        } else {
            *link = block->next;
        }
        taken += block->size;
        if (taken > peak) peak = taken;
        *memory = (uint8_t *)block + 16;
        return 0;
    }
    return 12;
}

void free(void *memory) {
    if (!memory) return;
    Block *block = (Block *)((uint8_t *)memory - 16), **link = &unused, *previous = NULL;
    taken -= block->size;
    while (*link && *link < block) previous = *link, link = &(*link)->next;
    block->next = *link;
    *link = block;
    if (block->next && (uint8_t *)block + block->size == (uint8_t *)block->next)
        block->size += block->next->size, block->next = block->next->next;
    if (previous && (uint8_t *)previous + previous->size == (uint8_t *)block)
        previous->size += block->size, previous->next = block->next;
}

void *memcpy(void *restrict to, const void *restrict from, size_t count) {
    uint8_t *target = to;
    const uint8_t *source = from;
    while (count--) *target++ = *source++;
    return to;
}

void *memmove(void *to, const void *from, size_t count) {
    uint8_t *target = to;
    const uint8_t *source = from;
    if (target <= source) return memcpy(to, from, count);
    while (count--) target[count] = source[count];
    return to;
}

void *memset(void *memory, int value, size_t count) {
    uint8_t *target = memory;
    while (count--) *target++ = (uint8_t)value;
    return memory;
}

int memcmp(const void *one, const void *other, size_t count) {
    const uint8_t *a = one, *b = other;
    for (; count--; a++, b++) if (*a != *b) return *a - *b;
    return 0;
}

// The hash tables' room.
double ceil(double value) {
    double whole = (double)(int64_t)value;
    return whole < value ? whole + 1 : whole;
}

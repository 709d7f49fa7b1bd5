#include <stddef.h>

/// The most bytes of memory that were in use at a time.
size_t memory_peak(void);

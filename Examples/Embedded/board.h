// What the board does for the program: board.c.
#include "memory.h"
#include <stdint.h>

/// The time since the start, in nanoseconds.
int64_t board_time(void);
/// The next byte of the serial line, or -1 if there is none.
int board_read(void);
/// Writes a byte to the serial line.
void board_write(uint8_t byte);
/// Waits for a millisecond without work for the processor.
void board_rest(void);
/// Ends the program; 0 is success.
_Noreturn void leave(uint32_t code);

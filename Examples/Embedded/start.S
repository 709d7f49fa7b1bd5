# Where the board begins: it sets the stack, the memory of zeros and the handler of traps, and calls `main`.
    .section .text.start
    .globl start
start:
    la sp, stack_end
    la t0, trap
    csrw mtvec, t0
    la t0, zeros_start
    la t1, zeros_end
1:  sw zero, 0(t0)
    addi t0, t0, 4
    bltu t0, t1, 1b
    call main
    j leave

    .balign 4
trap:
    csrr a0, mcause
    csrr a1, mepc
    call trapped

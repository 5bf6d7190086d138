#!/bin/sh
# embed.sh FILE OUT.S SYMBOL - an assembly file that holds FILE between the labels
# SYMBOL_start and SYMBOL_end.
set -eu
cat >"$2" <<END
.section .rodata
.balign 16
.globl ${3}_start
${3}_start:
.incbin "$(realpath "$1")"
.globl ${3}_end
${3}_end:
.byte 0
.section .note.GNU-stack,"",@progbits
END

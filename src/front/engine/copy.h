/* copy.h - a message of wire/ into a struct of the engine whose fields have the same names.
 *
 *     (struct process_exit){INIT_EXIT_FIELDS(COPY_FIELD, m)}
 *
 * A field that the struct lacks does not compile. */
#ifndef FRONT_ENGINE_COPY_H
#define FRONT_ENGINE_COPY_H

#define COPY_FIELD(m, type, name, max) COPY_##type(m, name)
#define COPY_U32(m, name) .name = (m)->name,
#define COPY_U64(m, name) .name = (m)->name,
#define COPY_STR(m, name) .name = (m)->name,
#define COPY_BYTES(m, name) .name = {(m)->name.p, (m)->name.len},
#define COPY_STRV(m, name) .name = {(m)->name.p, (m)->name.len},

#endif

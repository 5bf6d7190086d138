/* gather.h - several files, one behind the other, in place of a body. */
#ifndef HELPER_GATHER_H
#define HELPER_GATHER_H

#include "base/err.h"
#include "helper/args.h"

/* Every from=PATH of the arguments, in their order, to the end of `fd`. Only regular
 * files. */
int gather_fill(int fd, const struct args *a, struct err *e);
/* They are not needed any more: all are removed but the one that is `path`. */
int gather_remove(const struct args *a, const char *path, struct err *e);

#endif

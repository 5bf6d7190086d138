/* main.c - picks front or CLI from argv (the keeper is the CLI's `serve`);
 * nothing else. */
#include <string.h>

#include "cli/cli.h"
#include "front/front.h"

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], FRONT_ARG) == 0)
        return front_main(argc - 2, argv + 2);
    return cli_main(argc, argv);
}

/* main.c - picks front, keeper or CLI from argv; nothing else. */
#include <string.h>

#include "cli/cli.h"
#include "front/front.h"
#include "keeper/keeper.h"

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        return keeper_main(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], FRONT_ARG) == 0)
        return front_main(argc - 2, argv + 2);
    return cli_main(argc, argv);
}

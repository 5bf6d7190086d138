/* cli.h - the `cove` command: one row per command, one file per row. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

int cli_main(int argc, char **argv);

#endif

/* watch.h - reports on stdout what happens in a directory.
 *
 *   watch PATH r|- WINDOW_MS +INCLUDE... -EXCLUDE...
 *
 * First "ready", from which on no event is missed; then the lines of changes.h; then "end
 * deleted|moved|unmounted" if the directory itself goes away. After that it only waits to be
 * killed, since the reader may come later. A new directory is first watched and then listed,
 * and its content is reported as created, so that nothing is missed in between. Directories
 * without read permission are not watched. */
#ifndef HELPER_WATCH_WATCH_H
#define HELPER_WATCH_WATCH_H

/* Exit status. */
int watch_main(int argc, char **argv);

#endif

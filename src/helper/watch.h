/* watch.h - tells on stdout what happens in a directory, for as long as it is there.
 *
 *   watch PATH r|- WINDOW_MS +INCLUDE... -EXCLUDE...
 *
 * First "ready", when nothing can be missed any more; then the lines of changes.h;
 * "end deleted|moved|unmounted" when the directory itself goes away, and after that
 * nothing, until it is told to end: whoever reads may come later. A directory that
 * appears is watched first and listed then, and what is in it is told as created, so
 * nothing falls between. What the user may not read is not watched. */
#ifndef HELPER_WATCH_H
#define HELPER_WATCH_H

/* Exit status. */
int watch_main(int argc, char **argv);

#endif

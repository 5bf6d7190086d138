/* archive.h - what the helper packs and unpacks of a sandbox's writable layer, for front and helper.
 *
 * The layer is what a root differs in from its template: changed files as a stream of tar, and a
 * list of the template's paths that are gone. It is packed in a temporary sandbox made from a
 * snapshot and unpacked in a new one. Three calls:
 *
 *   layer-list          writes an entry per file of this root to stdout; run in a sandbox made from
 *                       the template, it is the base of
 *   layer-pack          reads the list of the base from stdin; writes frames to stdout
 *   layer-put BASE      reads the size of the removals and both streams from stdin; BASE: the digest
 *                       that the list of this root must have, or "any"
 *
 * A frame is a byte (enum archive_frame), the size of its payload (4 bytes, little endian), and
 * the payload. The front trusts no frame: sizes are bounded here, digests are its own.
 *
 * The stream of tar is cut at places that its content decides, so an unchanged part of a large
 * root gives the same chunks again. Each chunk is one zstd frame, and so all chunks of an archive
 * after each other are one .tar.zst. */
#ifndef WIRE_ARCHIVE_H
#define WIRE_ARCHIVE_H

#define ARCHIVE_CHUNK_MIN (4u << 20)                       /* bytes before compression */
#define ARCHIVE_CHUNK_MAX (16u << 20)                      /* likewise */
#define ARCHIVE_FRAME_MAX (ARCHIVE_CHUNK_MAX + (1u << 20)) /* bytes of one payload */
#define ARCHIVE_FRAME_HEAD 5u
#define ARCHIVE_GONE_MAX (64u << 20) /* bytes of the removals before compression */
#define ARCHIVE_LIST_MAX (1u << 30)  /* bytes of the list of a base */

enum archive_frame {
    ARCHIVE_TAR = 'T',    /* a chunk of the stream of tar */
    ARCHIVE_GONE = 'G',   /* a piece of the removals: paths, each with its NUL */
    ARCHIVE_RESULT = 'R', /* the last: {"base", "entries", "bytes", "gone"} */
};

#endif

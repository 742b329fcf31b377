/* An image with mount points that it lacks. */
#ifndef FLOWOS_INIT_OVERLAY_H
#define FLOWOS_INIT_OVERLAY_H

/* In user and mount namespaces of our own: shows what the link DIR/image names at DIR/overlay-root,
 * read-only, with what file DIR/mounts asks for, and becomes the command. What is made for that is
 * in memory, mounted over DIR, and goes with the namespaces. Records, each ended by NUL:
 *   dMODE PATH   make folder points/PATH, with this mode (octal)
 *   fPATH   make file points/PATH
 *   oPATH   over folder PATH of the image lies what is in points/PATH
 *   bPATH   PATH of the image itself again, which an overlay above it hides: an overlay minds the
 *           modes and owners of files, and a squashfs shown by FUSE does not
 * Returns only on failure: the exit code, after a message on stderr. */
int enter_overlay(const char* dir, char** argv);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open files of a task. Implemented in objects/.
 *
 * All functions may be called on any thread, and take no lock. The guest may
 * run meanwhile: then facts are of different moments. All values are untrusted.
 */
#ifndef KT_API_FILES_H
#define KT_API_FILES_H

#include "kalloc-tracer/api/kt-objects.h"

#define KT_FILE_PATH_MAX 4096
#define KT_FILE_FS_MAX 32

/** Facts about a file that may be unknown: bits of KtFile.known. */
typedef enum KtFileFact {
    KT_FILE_FLAGS = 1 << 0,
    KT_FILE_OP = 1 << 1,
    KT_FILE_INODE = 1 << 2,     /* @inode */
    KT_FILE_INO = 1 << 3,
    KT_FILE_MODE = 1 << 4,
    KT_FILE_DENTRY = 1 << 5,
} KtFileFact;

/**
 * struct KtFile - an open file
 * @fd: its number
 * @va: of its struct file
 * @known: KtFileFact
 * @flags: those of open(), as /proc/PID/fdinfo has them
 * @op: address of its file_operations
 * @inode, @ino, @mode: of the file, its number, and its i_mode
 * @dentry: address
 * @fs: name of the type of file system; untrusted bytes, "" if unknown
 * @path: as readlink() of /proc/PID/fd has it, from the root of the mount
 *        namespace; untrusted bytes, "" if unknown
 * @whole: @path begins at that root, or is the name of something that has no
 *         path ("pipe:[123]"); false: it begins with "..."
 */
typedef struct KtFile {
    unsigned fd;
    uint64_t va;
    unsigned known;
    uint32_t flags;
    uint64_t op;
    uint64_t inode, ino;
    uint32_t mode;
    uint64_t dentry;
    char fs[KT_FILE_FS_MAX + 1];
    char path[KT_FILE_PATH_MAX + 1];
    bool whole;
} KtFile;

/** kt_file_type() - (static) return the kind of file: "file", "dir", "char",
 *  "block", "pipe", "socket", "link", "anon"; NULL if it is not known. */
const char *kt_file_type(const KtFile *f);

/** Called for each file; false ends the listing. */
typedef bool (*KtFileFn)(const KtFile *f, void *opaque);

/**
 * kt_files_foreach() - call @fn for each open file, by fd
 * @files: address of the files_struct
 *
 * Returns: (static) why the list may not be whole, NULL if it is.
 */
const char *kt_files_foreach(const KtObjects *o, uint64_t files, KtFileFn fn,
                             void *opaque);

#endif /* KT_API_FILES_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-kexec: start another kernel in the place of this one.
 *
 *   ka-kexec KERNEL INITRD COMMAND-LINE
 *
 * Runs inside the guest. Does not return unless something failed: exit code 1,
 * 2 usage, 77 where the kernel cannot do it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RB_KEXEC
#define RB_KEXEC 0x45584543
#endif

int main(int argc, char **argv)
{
    int kernel, initrd;

    if (argc != 4) {
        fprintf(stderr, "usage: ka-kexec KERNEL INITRD COMMAND-LINE\n");
        return 2;
    }
    kernel = open(argv[1], O_RDONLY);
    initrd = open(argv[2], O_RDONLY);
    if (syscall(SYS_kexec_file_load, kernel, initrd, strlen(argv[3]) + 1,
                argv[3], 0L) < 0) {
        perror("ka-kexec: kexec_file_load");
        return errno == ENOSYS ? 77 : 1;
    }
    reboot(RB_KEXEC);
    perror("ka-kexec: reboot");
    return 1;
}

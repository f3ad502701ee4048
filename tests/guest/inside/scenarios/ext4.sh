#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a file system with a journal, on a disk in memory. ext4 is built in:
# the calls that fail are chosen by functions on their stacks.
# modules: brd
# functions: ext4_fill_super ext4_init_fs_context ext4_parse_param
# functions: ext4_put_super ext4_sync_fs ext4_create ext4_mkdir ext4_symlink
# functions: ext4_rename2 ext4_unlink ext4_rmdir ext4_lookup ext4_readdir
# functions: ext4_da_write_begin ext4_writepages ext4_evict_inode ext4_setattr
# functions: jbd2_journal_commit_transaction
# files: ext4.img
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    mkdir -p /tmp/mnt &&
        dd if=/share/ext4.img of=/dev/ram0 bs=64k &&
        mount -t ext4 /dev/ram0 /tmp/mnt &&
        mkdir /tmp/mnt/folder &&
        dd if=/dev/zero of=/tmp/mnt/folder/file bs=4k count=8 &&
        ln -s file /tmp/mnt/folder/link &&
        mv /tmp/mnt/folder/file /tmp/mnt/file &&
        ls -lR /tmp/mnt &&
        sync &&
        truncate -s 5000 /tmp/mnt/file &&
        rm -r /tmp/mnt/folder
}

undo() {
    twice umount /tmp/mnt
}

load brd rd_nr=1 rd_size=4096 && use
finish $?

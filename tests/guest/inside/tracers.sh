#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_tracers.py: files and processes while the tracer that the
# command line names (ka_tracer=) replaces return addresses. The tracer itself
# writes nothing to the ring buffer, which the test reads.
t=/sys/kernel/tracing
tracer=$(sed -n 's/.*ka_tracer=\([a-z]*\).*/\1/p' /proc/cmdline)
allocators='__kmalloc_noprof __kmalloc __kmalloc_cache_noprof kmalloc_trace
kmem_cache_alloc_noprof kmem_cache_alloc kmem_cache_alloc_node_noprof
kmem_cache_alloc_node kmem_cache_alloc_lru_noprof kmem_cache_alloc_lru
__kmalloc_node_track_caller_noprof __kmalloc_node_track_caller
vzalloc_noprof vzalloc kfree kmem_cache_free vfree'
callers='do_filp_open vfs_open alloc_empty_file d_alloc vfs_read vfs_statx
copy_process seq_open security_file_alloc kernel_clone'

# Add the event of the return of each function that the kernel has.
# $1: the file; $2: the kind; $3: what is behind the name of the function
add_returns() {
    i=0
    for f in $allocators $callers; do
        echo "$2:ka/n$i $f$3" 2>/dev/null >>"$t/$1" && i=$((i + 1))
    done
    echo "tracers: $i functions"
    [ $i -ge 12 ]
}

# Switch the events of a group on. Their filter matches nothing.
enable_quietly() {
    echo 'common_pid == 123456789' >"$t/events/$1/filter" &&
        echo 1 >"$t/events/$1/enable"
}

case $tracer in
graph)
    echo 1000000000 >$t/tracing_thresh &&
        echo 'vfs_* do_sys_open* path_* *kmalloc* kmem_cache_* kfree' \
            >$t/set_ftrace_filter &&
        echo function_graph >$t/current_tracer
    ;;
kretprobe)
    add_returns kprobe_events r '' && enable_quietly ka
    ;;
fprobe)
    add_returns dynamic_events f '%return' && enable_quietly ka
    ;;
bpf)
    # Some kernels do not list trampolines by default (riscv64).
    echo 1 >/proc/sys/net/core/bpf_jit_kallsyms
    rm -f /tmp/attached
    # shellcheck disable=SC2086
    /share/ka-fexit $allocators $callers >/tmp/attached &
    while ! grep -q attached /tmp/attached; do
        kill -0 $! || exit 1
        sleep 0.1
    done
    cat /tmp/attached
    ;;
esac || exit 1
sh /ka/work.sh "$1"

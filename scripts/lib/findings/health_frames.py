# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames in the reports of a kernel's log, and the one that a report is named
after.

A trail is a tuple of steps through the lines of a report. A step that is a
pattern goes on to the first line that it matches; its groups are frames. TRACE
stands for the frames of the stack trace that follows, up to the next trace, or
to a line that the next step matches.
"""
import itertools
import re

from .finding import read_frame

TRACE = None

PC = r'\[<?(?:0x)?[0-9a-f]+>?\]'
FUNC = r'([A-Za-z0-9_]+)[.+]'

FRAME = re.compile(rf' *(?:{PC} ){{0,2}}{FUNC}')
# Of 32-bit Arm: the function, and the one that called it.
FRAME_ARM = re.compile(rf' *{PC} \(([\w.]+)\) from {PC} \({FUNC}')
# A frame that may be left over on the stack.
GUESS = re.compile(r' \? ')
# Lines at which another stack trace begins.
STARTS = re.compile(
    r'Call [Tt]race|(?:Allocated|Freed)(?: by task \d+)?:|Backtrace:|'
    r'[^k] backtrace(?: \(crc [0-9A-Fa-f]*\))?:|'
    r'Uninit was stored to memory at|'
    r'status: [0-9a-f]{16} badaddr: [0-9a-f]{16} cause: [0-9a-f]{16}')
# A stack of fault injection is printed in the midst of a report.
INJECTED = re.compile(r'(?: \[<?(?:0x)?[0-9a-f]+>?\])? '
                      r'should_fail(?:slab)?(?:\.[a-z0-9.]+)?\+0x')

CALL = re.compile(r'Call [Tt]race:|Backtrace:')
# The instruction at which the CPU was; it may have no symbol.
AT_PC = re.compile(
    rf'(?:IP|NIP|pc |PC is at):? (?:(?:\d+:)?(?:{PC} +){{0,2}}{FUNC}|'
    rf'(?:\d+:)?0x[0-9a-f]+|(?:\d+:)?{PC} +\[< *\(null\)>\] +\(null\)|'
    r'\d+: +\(null\))')
AT = re.compile(rf'at: (?:{PC} +)?{FUNC}')

FAULT = AT_PC, CALL, TRACE          # the instruction, and how it came there
PLACE = AT_PC,                      # the instruction alone
STACK = CALL, TRACE
# A warning is an exception on x86 and riscv: its place is the instruction. If
# that only reports, it is the stack.
WARN = (re.compile(rf'{AT_PC.pattern}|--- interrupt: \d+ at {FUNC}'), TRACE), \
    STACK

# Functions that only report, or do the work of their caller: a report is named
# after the caller. Parts of names, by subject. Which ones count is a fact of
# syzkaller's titles (its pkg/report/linux.go, 351cb5cf1aae), like the anchors
# below: with another list the same bug has another title.
SKIPPED = {
    'checkers': r'__sanitizer|__asan|kasan|hwasan|__msan|kmsan|'
        r'kcsan_setup_watchpoint|check_memory_region|check_heap_object|'
        r'check_object|'
        r'read_word_at_a_time|(?:read|write)_once_.*nocheck|'
        r'print_address_description|print_report|print_usage_bug|'
        r'debug_object|(?:timer|work)_is_static_object|__fortify_report|'
        r'^get_taint$|print_tainted',
    'traps and stacks': r'panic|invalid_op|report_bug|fixup_bug|do_error|'
        r'_trap$|do_trap|show_stack|dump_stack|walk_stack|dump_backtrace|'
        r'warn_slowpath|warn_alloc|warn_bogus|__warn|program_check_|'
        r'do_(?:kernel|translation)_fault|do_mem_abort|el1_abort|'
        r'el1h_64_sync|arch_stack_walk|stack_trace_(?:save|consume_entry)|'
        r'_indirect_thunk_|assertfail',
    'allocators': r'alloc_page|k?v?[mzc]alloc|krealloc|kmem_cache|'
        r'allocate_slab|__alloc_frozen_pages_noprof|slab_|^kv?free$|kfree_skb|'
        r'folio_(?:alloc|unlock)|filemap_alloc_folio|__filemap_get_folio|'
        r'find_or_create_page|do_read_cache_folio|read_cache_page|'
        r'pagecache_get_page|grab_cache_page_write_begin|__phys_addr',
    'locks': r'__might_fault|print_unlock|imbalance_bug|lockdep|'
        r'bh_(?:en|dis)able|perf_trace|lock_(?:acquire|release|class)|'
        r'mark_lock|(?:reacquire|mark)_held_locks|raw_spin_rq|'
        r'spin_(?:lock|trylock|unlock)|(?:read|write)_(?:try)?lock|'
        r'(?:read|write)_unlock|^down$|down_(?:read|write|trylock)|'
        r'up_(?:read|write)|^_?_?mutex_|^rt_mutex_|owner_on_cpu|'
        r'osq_(?:un)?lock|seqprop_assert|__might_resched|'
        r'(?:trace|lockdep)_(?:hard|soft)irq|^(?:un)?lock_page',
    'counts and bits': r'atomic(?:64)?_(?:dec|inc|read|set|x?or|and|add|sub|'
        r'fetch|xchg|cmpxchg|try)|(?:set|clear|change|test)_bit|^refcount_|'
        r'^kref_|ref_tracker|^ihold$|^iput(?:_final)?$|drop_nlink|'
        r'fast_dput|dput|^put_device$',
    'copies and strings': r'mem(?:cpy|cmp|set|chr|move|dup)|str(?:n?cmp|n?cpy|'
        r'lcpy|scpy|len|n?str|nlen|chr|n?dup)|copy_(?:to|from)_(?:user|iter)|'
        r'copy_page_(?:to|from)_iter|copy_folio_to_iter|^copy(?:in|out)$|'
        r'(?:put|get)_user|might_(?:fault|sleep)|string|pointer|s[nc]+printf|'
        r'kv?asprintf|va_format|hex_dump_to_buffer|print_hex_dump|^crc\d+|'
        r'crc_itu_t|extract_(?:user|iter)_to_sg',
    'messages': r'printk|dev_(?:info|notice|warn|err|alert|crit|emerg)',
    'containers': r'list_(?:add|del|replace|move|splice)|^_?_?rb_|^klist_|'
        r'xas_(?:start|load|find)|ida_free|rhashtable_lookup|'
        r'find_lock_entries|truncate_inode_pages_range|mark_buffer_dirty',
    'waits, work and timers': r'__wake_up|del_timer|flush_work|'
        r'__cancel_work_timer|cancel_work_sync|try_to_grab_pending|'
        r'drain_workqueue|destroy_workqueue|queue_work|finish_wait|'
        r'kthread_stop|^complete$|wait_for_completion|insert_work|'
        r'queue_delayed_work|cleanup_srcu_struct|lock_timer_base|'
        r'__timer_delete_sync|sk_stop_timer_sync|__mod_timer',
    'devices': r'kobject_|add_uevent_var|get_device_parent|device_(?:add|del|'
        r'unregister|destroy|release)|devres_release_all|hwrng_unregister|'
        r'i2c_del_adapter|__unregister_client|device_for_each_child|'
        r'rollback_registered|unregister_netdev|sysfs_remove|'
        r'device_remove_file|tty_unregister_device|dummy_urb_enqueue|'
        r'usb_kill_(?:anchored_)?urb|usb_control_msg|usb_(?:hcd_)?submit_urb|'
        r'(?:read|write)[bwlq]$|logic_(?:in|out)',
}
SKIP = '|'.join(SKIPPED.values())

# Beginnings of the names of system calls; a title has the shortest rest.
SYSCALL = ('SYSC_', 'SyS_', 'sys_', '__x64_', '__ia32_', '__arm64_', '____sys_',
           '___sys_', '__sys_', '__se_', '__se_sys_', '__do_sys_',
           'compat_SYSC_', 'compat_SyS_', 'ksys_')


def strip(function):
    return min((function.removeprefix(p) for p in SYSCALL), key=len)


# --- the steps of a trail ----------------------------------------------------

def frames_of(line, step=None):
    """Return the frames of a line of a trace, or of a step that it matches."""
    m = step.search(line) if step else FRAME.match(line) or \
        FRAME_ARM.match(line)
    return [f for f in m.groups() if f] if m else []


def follow_trace(lines, at, after):
    """Take the frames of a trace from line AT on. AFTER: the step behind it.
    Return (frames, next line, whether the step AFTER is done, too)."""
    found = []
    while at < len(lines):
        line, at = lines[at], at + 1
        if INJECTED.match(line) or STARTS.search(line):
            break
        if after and after.search(line):
            return found + frames_of(line, after), at, True
        found += frames_of(line)
    return found, at, False


def follow(lines, trail):
    """Yield the frames of each trace of a trail, and of the steps in front of
    it. Guesses of the unwinder are not among the lines."""
    found, at, traces, done = [], 0, 0, False
    for i, step in enumerate(trail):
        if done:
            done = False
        elif step is TRACE:
            if traces:
                yield found
                found = []
            traces += 1
            after = trail[i + 1] if i + 1 < len(trail) else None
            more, at, done = follow_trace(lines, at, after)
            found += more
        else:
            while at < len(lines):
                line, at = lines[at], at + 1
                if INJECTED.match(line):
                    break
                if step.search(line):
                    found += frames_of(line, step)
                    break
    yield found


# --- the frame that a report is named after ----------------------------------

def first(frames):
    return frames[0] if frames else None


# A CPU that is stuck loops through many functions. What called the loop is the
# same each time: the function in front of one of these.
STALL_ANCHORS = re.compile(
    # entries and loops of the kernel
    r'process_one_work|do_syscall_|do_fast_syscall_|sysenter_dispatch|'
    r'tracesys_phase2|el0_svc_handler|invoke_syscall|ret_fast_syscall|'
    r'netif_receive_skb|do_softirq|call_timer_fn|_run_timers|'
    r'run_timer_softirq|hrtimer_run|run_ksoftirqd|smpboot_thread_fn|^kthread$|'
    r'start_secondary|cpu_startup_entry|ret_from_fork|__do_fault|'
    r'do_page_fault|^page_fault$|__fput|task_work_run|exit_to_usermode|'
    r'smp_call_function|tasklet_(?:hi_)?action|'
    # files
    r'vfs_(?:iter_)?(?:write|read)|do_iter_(?:read|write)|'
    r'call_(?:read|write)_iter|new_sync_(?:read|write)|vfs_ioctl|ksys_ioctl|'
    r'compat_(?:sys_)?ioctl|blkdev_(?:driver_)?ioctl|^call_mmap|mmap_region|'
    r'do_mmap|do_dentry_open|vfs_open|'
    # sockets
    r'^sock_(?:sendmsg|recvmsg|release|mmap|do_ioctl|ioctl)|^__sock_release|'
    r'^setsockopt$|kernel_setsockopt|sock_common_setsockopt|^listen$|'
    r'kernel_listen|sk_common_release|^accept$|kernel_accept|'
    r'^compat_sock_ioctl|^nfnetlink_rcv_msg|^rtnetlink_rcv_msg|^netlink_dump|'
    r'^(?:sys_)?(?:socketpair|connect|ioctl)')


def stalled(frames):
    """Return the function that called the loop of a CPU that is stuck."""
    for before, frame in zip([frames[0], *frames] if frames else [], frames):
        if STALL_ANCHORS.search(frame):
            return 'smp_call_function' if 'smp_call_function' in frame else \
                before
    return None


# A task that hangs is the victim of who does not wake it. These say more of
# that than their callers.
HANG_ANCHORS = {'rtnl_lock': None, 'synchronize_rcu': 'synchronize_rcu',
                'synchronize_srcu': 'synchronize_rcu',
                'synchronize_net': 'synchronize_rcu',
                'synchronize_sched': 'synchronize_rcu'}
HANG_SKIPPED = re.compile(r'sched|_lock|_slowlock|down|rwsem|completion|'
                          r'kthread|wait|synchronize|context_switch|'
                          r'__switch_to|cancel_delayed_work|rcu_barrier')


def hung(frames):
    """Return the function that waits."""
    for frame in frames:
        for anchor, name in HANG_ANCHORS.items():
            if anchor in frame:
                return name or frame
    return first([f for f in frames if not HANG_SKIPPED.search(f)])


def name(lines, trails, skip='', pick=first):
    """Return the function that a report is named after, or None. SKIP: a
    pattern of more functions that are passed over."""
    skipped = re.compile(f'{SKIP}|{skip}' if skip else SKIP)
    stacks = [[strip(f) for f in next(follow(lines, trail))
               if not skipped.search(f)] for trail in trails]
    return next(filter(None, [*map(pick, stacks), *map(first, stacks)]), None)


# --- the stack that a report is about ----------------------------------------

PRINTED = re.compile(rf' *(?:{PC} ){{0,2}}([\w.]+\+0x[0-9a-f]+)/0x[0-9a-f]+'
                     r'(?: \[([\w-]+)[^\]]*\])?')
AT_PC_PRINTED = re.compile(r'(?:IP|NIP|pc ?|PC is at):? (?:\d+:)?(?:' + PC +
                           r' +){0,2}([\w.]+\+0x[0-9a-f]+)/0x[0-9a-f]+'
                           r'(?: \[([\w-]+)[^\]]*\])?')
# They print a stack, or end the kernel.
DUMPS = re.compile('dump_stack|show_stack|dump_backtrace|^v?panic$')


def printed(match):
    text = match[1] + (f'[{match[2]}]' if match[2] else '')
    return read_frame(text)


# Lines in a trace that are no frames: <TASK>, and registers.
IN_TRACE = re.compile(r' *(?:<|RIP|Code|R[A-Z0-9]{2}:|[A-Z]{2}: )')


def trace_of(lines):
    """Return the frames of the first stack trace."""
    found = []
    for line in lines:
        m = PRINTED.match(line)
        if m:
            found.append(printed(m))
        elif found and not IN_TRACE.match(line):
            break
    return found


def find(pattern, lines):
    return next((i for i, line in enumerate(lines) if pattern.search(line)),
                None)


def code_at_pc(lines):
    """Return the instruction at which the CPU was, and how it came there. A
    trace that begins with the exception has the instruction in its midst."""
    at, call = find(AT_PC_PRINTED, lines), find(CALL, lines)
    if at is None:
        return []
    place = printed(AT_PC_PRINTED.search(lines[at]))
    trace = [] if call is None else trace_of(lines[max(at, call) + 1:])
    return [place, *trace[trace[:1] == [place]:]]


def code(lines, function, exception):
    """Return the frames of the code that a report is about: of an exception
    from its place on, else from the function on that the report is named
    after."""
    found = code_at_pc(lines) if exception else []
    if found:
        return found
    call = find(CALL, lines)
    trace = [] if call is None else trace_of(lines[call + 1:])
    names = [strip(f.function.partition('.')[0]) for f in trace]
    if function in names:
        return trace[names.index(function):]
    return list(itertools.dropwhile(lambda f: DUMPS.search(f.function), trace))

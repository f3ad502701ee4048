# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel's log can say of the kernel's health: a row for each report
that counts. To add one, add a row. A title is that of syzkaller, if it has one:
what is known of a bug can then be searched for by its title."""
import dataclasses
import re

from . import health_frames as frames
from .health_frames import (
    AT, AT_PC, CALL, FAULT, FUNC, PC, PLACE, STACK, TRACE, WARN)

# What a kind means, in one line. A suppression names the kind.
MEANINGS = {
    'oops': 'the CPU could not go on: a wild access, a fault, an instruction '
            'that is none',
    'bug': 'an assertion of the kernel does not hold (BUG)',
    'warning': 'the kernel found something that it does not expect (WARN)',
    'lockdep': 'locks are used so that a deadlock is possible, or against '
               'their rules',
    'atomic': 'code that may sleep, or be preempted, runs where it must not',
    'rcu-stall': 'a CPU or task holds up RCU',
    'hung-task': 'a task waits for minutes',
    'soft-lockup': 'a CPU runs kernel code for long without a switch of tasks',
    'hard-lockup': 'a CPU takes no interrupts',
    'workqueue': 'a pool of the workqueues does not get on',
    'oom-kill': 'memory ran out, and a task was killed',
    'bad-page': 'a page or the counts of a task\'s pages are wrong',
    'list-corruption': 'a linked list is damaged',
    'refcount': 'a reference count is wrong',
    'kobject': 'a kobject is used wrongly',
    'odebug': 'an object is used in a state that does not allow it',
    'slab': 'the allocator found damage in a slab',
    'usercopy': 'a copy to or from user space leaves its object',
    'stack': 'the stack of a task is damaged or full',
    'kasan': 'KASAN found a wrong access or free',
    'kfence': 'KFENCE found a wrong access or free',
    'kmsan': 'KMSAN found a use of memory that nobody has written',
    'kcsan': 'KCSAN found two accesses that race',
    'ubsan': 'UBSAN found undefined behaviour',
    'kmemleak': 'kmemleak found memory to which nothing refers',
    'leaked-reference': 'an object waits for references that nobody drops',
    'panic': 'the kernel has given up',
}


@dataclasses.dataclass(frozen=True)
class Row:
    """A report.

    start    what a line is like that begins it
    title    its title: {f} is a function, {0}, {1} ... what the groups of
             START and then those of MORE matched
    trails   where the function is (health_frames.py): the first that leads to
             one
    skip     functions that are passed over, too: a pattern
    pick     which of the frames it is
    more     what another line is like that is needed for the title
    alt      titles that reports of the same bug may share
    deadly   the task or the interrupt does not go on
    single   the report is this line; it can be printed in the midst of another
    wandering  its stack is another one each time
    """
    kind: str
    start: re.Pattern
    title: str
    trails: tuple = ()
    skip: str = ''
    pick: object = frames.first
    more: re.Pattern = None
    alt: tuple = ()
    deadly: bool = False
    single: bool = False
    wandering: bool = False

    @property
    def is_exception(self):
        """Is it about the instruction at which the CPU was?"""
        return self.trails[:1] in (WARN[:1], (FAULT,), (PLACE,)) or \
            self.start.pattern.startswith('kernel BUG')


ROWS = []


def add(kind, start, title, *trails, skip='', pick=frames.first, more=None,
        alt=(), **more_of_it):
    ROWS.append(Row(kind, re.compile(start), title, trails, skip, pick,
                    re.compile(more) if more else None,
                    (alt,) if isinstance(alt, str) else alt, **more_of_it))


# --- trails ------------------------------------------------------------------

AT_PC_NAME = re.compile(rf'{PC} +{FUNC}')


def behind(text):
    """A step to the function in a line."""
    return re.compile(text + FUNC)


def line_at(text, n=1):
    """A trail to the Nth "at: FUNCTION" behind a line."""
    return (re.compile(text), *[AT] * n)


# --- checkers of memory ------------------------------------------------------

KASAN = r'BUG: KASAN: '
KASAN_STACK = behind(KASAN + r'[a-z\-]+ in '), CALL, TRACE
FREE = r'(?:double-free or invalid-free|double-free|invalid-free)'
add('kasan', KASAN + rf'{FREE} in {FUNC}', 'KASAN: invalid-free in {f}',
    (behind(KASAN + FREE + ' in '), CALL, TRACE),
    skip='slab_|kfree|vunmap|vfree', alt='invalid-free in {f}')
add('kasan', KASAN + rf'([a-z\-]+) in {FUNC}', 'KASAN: {0} {2} in {f}',
    KASAN_STACK, more=r'(Read|Write) (?:of size|at addr) (?:[0-9a-f]+)',
    skip='kernel_fault|tag_check|mem_abort|^el1_|^el1h_',
    alt='bad-access in {f}')
add('kasan', KASAN + r'([a-z\-]+) on address', 'KASAN: {0} {1}',
    more=r'(Read|Write) of size [0-9]+')
add('kasan', KASAN + r'([a-z\-]+) in', 'KASAN: {0} in {f}', KASAN_STACK)
add('kasan', KASAN + r'(.*)', 'KASAN: {0}')

ORIGIN = re.compile(r'Local variable .* created at:|Uninit was created at:')
UNINIT = TRACE, ORIGIN, TRACE
add('kmsan', rf'BUG: KMSAN: kernel-usb-infoleak in {FUNC}',
    'KMSAN: kernel-usb-infoleak in {f}', UNINIT,
    skip='alloc_skb|usb_submit_urb|usb_start_wait_urb|usb_bulk_msg|'
    'usb_interrupt_msg|usb_control_msg')
add('kmsan', rf'BUG: KMSAN: ([a-z\-]+) in {FUNC}', 'KMSAN: {0} in {f}', UNINIT,
    skip=r'alloc_skb|netlink_ack|netlink_rcv_skb|_encrypt$|'
    r'^(?:crypto|cipher|drbg|rng)_', alt='bad-access in {f}')
add('kmsan', r'BUG: KMSAN: (.*)', 'KMSAN: {0}')
add('kcsan', r'BUG: KCSAN: (.*)', 'KCSAN: {0}')

KFENCE = r'BUG: KFENCE: '
KFENCE_STACK = behind(KFENCE + r'[a-z\- ]+ in '), TRACE
add('kfence', KFENCE + rf'((?:use-after-free|out-of-bounds|invalid) '
    rf'(?:read|write)) in {FUNC}', 'KFENCE: {0} in {f}', KFENCE_STACK,
    alt='bad-access in {f}')
add('kfence', KFENCE + rf'(invalid free) in {FUNC}', 'KFENCE: {0} in {f}',
    KFENCE_STACK, alt='invalid-free in {f}')
add('kfence', KFENCE + rf'(memory corruption) in {FUNC}', 'KFENCE: {0} in {f}',
    KFENCE_STACK)
add('kfence', KFENCE + r'(.*)', 'KFENCE: {0}')

add('ubsan', r'UBSAN: array-index-out-of-bounds in',
    'UBSAN: array-index-out-of-bounds in {f}', STACK, skip='ubsan|overflow',
    alt='bad-access in {f}')
add('ubsan', r'UBSAN: Undefined behaviour in ',
    'UBSAN: undefined-behaviour in {f}', STACK, skip='ubsan|overflow')
add('ubsan', r'UBSAN: (.*?) in ', 'UBSAN: {0} in {f}', STACK,
    skip='ubsan|overflow')

add('kmemleak', r'BUG: memory leak', 'memory leak in {f}',
    (re.compile(r'backtrace(?: \(crc [0-9A-Fa-f]*\))?:'), TRACE),
    skip='kmemleak|mmap|kmem|slab|alloc|create_object|idr_get|list_lru_init|'
    'kv?asprintf|pcpu_create|str(?:n)?dup|memdup')
add('kmemleak', r'kmemleak: \d+ new suspected memory leaks',
    'kmemleak: new suspected memory leaks', single=True)

# --- faults ------------------------------------------------------------------

add('oops', r'BUG: (?:unable to handle kernel paging request|unable to handle '
    r'page fault for address|Unable to handle kernel data access)',
    'BUG: unable to handle kernel paging request in {f}', FAULT,
    alt='bad-access in {f}', deadly=True)
add('oops', r'BUG: (?:unable to handle kernel|[kK]ernel) NULL pointer '
    r'dereference',
    'BUG: unable to handle kernel NULL pointer dereference in {f}', FAULT,
    alt='bad-access in {f}', deadly=True)
add('oops', r'BUG: [uU]nable to handle kernel', 'BUG: unable to handle kernel',
    deadly=True)
add('oops', r'Unable to handle kernel (paging request|NULL pointer dereference|'
    r'access to user memory)', 'BUG: unable to handle kernel {0} in {f}', FAULT,
    alt='bad-access in {f}', deadly=True)
add('oops', r'(?:segment-related |kasan: GPF could be caused by NULL-ptr deref '
    r'or user memory access)?general protection fault.*:',
    'general protection fault in {f}', FAULT, alt='bad-access in {f}',
    deadly=True)
add('oops', r'stack segment: ', 'stack segment fault in {f}', FAULT,
    deadly=True)
add('oops', r'PANIC: double fault', 'PANIC: double fault in {f}', PLACE,
    deadly=True)
add('oops', r'divide[ _]error: ', 'divide error in {f}', PLACE, deadly=True)
add('oops', r'invalid opcode: ', 'invalid opcode in {f}', PLACE, deadly=True)
add('oops', r'int3: ', 'int3 in {f}', FAULT, deadly=True)
add('oops', r'Internal error:', 'Internal error in {f}', FAULT,
    alt='bad-access in {f}', deadly=True)
add('oops', r'Unhandled fault:', 'Unhandled fault in {f}', FAULT,
    alt='bad-access in {f}', deadly=True)
add('oops', r'Alignment trap:', 'Alignment trap in {f}', FAULT, deadly=True)
add('oops', r'^Oops(?: - [^:]*)?(?:: .*)? \[#\d+\]', 'Oops in {f}', FAULT,
    deadly=True)

# --- stacks ------------------------------------------------------------------

add('stack', r'BUG: .*stack guard page was hit at',
    'BUG: stack guard page was hit in {f}', FAULT, pick=frames.stalled,
    alt='stack-overflow in {f}', deadly=True)
add('stack', r'Kernel panic - not syncing: stack-protector: Kernel stack is '
    rf'corrupted in: {FUNC}', 'kernel panic: stack is corrupted in {0}',
    deadly=True)
add('stack', r'Kernel panic - not syncing: stack-protector:',
    'kernel panic: stack is corrupted in {f}', STACK, skip='stack_chk',
    deadly=True)
add('stack', r'Kernel panic - not syncing: corrupted stack end',
    'kernel panic: corrupted stack end in {f}', STACK,
    skip='schedule|retint_kernel', pick=frames.stalled,
    alt='stack-overflow in {f}', deadly=True)
add('stack', r'Kernel panic - not syncing: kernel stack overflow',
    'kernel stack overflow in {f}', STACK, skip='bad_stack',
    pick=frames.stalled, alt='stack-overflow in {f}', deadly=True)
add('stack', r'WARNING: kernel stack regs (?:at [0-9a-f]+ in \S* )?.*has bad '
    r"'([^']+)' value", "WARNING: kernel stack regs has bad '{0}' value")
add('stack', r'WARNING: kernel stack frame pointer .*has bad value',
    'WARNING: kernel stack frame pointer has bad value')

# --- BUG ---------------------------------------------------------------------

add('usercopy', r'kernel BUG at mm/usercopy\.c', 'BUG: bad usercopy in {f}',
    STACK, skip='usercopy|__check', deadly=True)
add('list-corruption', r'kernel BUG at lib/list_debug\.c',
    'BUG: corrupted list in {f}', STACK, alt='bad-access in {f}', deadly=True)
add('bug', r'kernel BUG at ', 'kernel BUG in {f}', FAULT, skip='^skb_',
    deadly=True)
add('bug', r'Kernel BUG (.*)', 'kernel BUG {0}', deadly=True)

# --- locks -------------------------------------------------------------------

# Work items have locks of their own, which these functions take.
WORK = 'process_one_work|flush_workqueue|drain_workqueue|destroy_workqueue'
HEAD = r'(?:WARNING|INFO): '
TAKES = 'is trying to acquire lock'
add('lockdep', 'WARNING: possible circular locking dependency detected',
    'possible deadlock in {f}', (AT, AT, TRACE), skip=WORK)
add('lockdep', 'INFO: possible circular locking dependency detected',
    'possible deadlock in {f}', line_at(TAKES))
add('lockdep', HEAD + 'possible irq lock inversion dependency detected',
    'possible deadlock in {f}', line_at('just changed the state of lock'))
add('lockdep', 'WARNING: .*-safe -> .*-unsafe lock order detected',
    'possible deadlock in {f}',
    (re.compile('which became .* at:'), TRACE))
add('lockdep', 'INFO: .*-safe -> .*-unsafe lock order detected',
    'possible deadlock in {f}', line_at('is trying to acquire'))
add('lockdep', HEAD + 'possible recursive locking detected',
    'possible deadlock in {f}', line_at(TAKES))
add('lockdep', 'WARNING: inconsistent lock state',
    'inconsistent lock state in {f}', STACK)
add('lockdep', 'INFO: inconsistent lock state',
    'inconsistent lock state in {f}', line_at('takes'))
add('lockdep', r'(WARNING|INFO): suspicious RCU usage',
    '{0}: suspicious RCU usage in {f}', STACK, skip='rcu|kmem|slab')
add('lockdep', 'INFO: trying to register non-static key',
    'INFO: trying to register non-static key in {f}', STACK,
    skip='stack|lock|IRQ')
add('lockdep', r'(BUG|WARNING): .*still has locks held!',
    '{0}: still has locks held in {f}', (AT,), (AT_PC_NAME,))
add('lockdep', r'(BUG|WARNING): lock held when returning to user space',
    '{0}: lock held when returning to user space in {f}',
    line_at('leaving the kernel with locks still held'))
add('lockdep', r'(BUG|WARNING): bad unlock balance detected!',
    '{0}: bad unlock balance in {f}', (AT_PC_NAME, CALL, TRACE), STACK)
add('lockdep', r'(BUG|WARNING): held lock freed!',
    '{0}: held lock freed in {f}', (AT,), (AT_PC_NAME,))
add('lockdep', r'BUG: Invalid wait context', 'WARNING: locking bug in {f}',
    STACK, skip='lock_sock|release_sock')
add('lockdep', r'WARNING: .*kernel/locking/lockdep\.c.*lock_',
    'WARNING: locking bug in {f}', *WARN, skip='lock_sock|release_sock')
add('lockdep', r'WARNING: Nested lock was not taken',
    'WARNING: nested lock was not taken in {f}', *WARN)
add('lockdep', r'BUG: (spinlock|rwlock) (lockup suspected|already unlocked|'
    r'recursion|cpu recursion|bad magic|wrong owner|wrong CPU|'
    r'trylock failure on UP)', 'BUG: {0} {1} in {f}', STACK,
    skip='spin_|_lock|_unlock')

# --- context -----------------------------------------------------------------

add('atomic', r'BUG: scheduling while atomic',
    'BUG: scheduling while atomic in {f}', STACK, skip='schedule')
add('atomic', r'BUG: sleeping function called from invalid context at ',
    'BUG: sleeping function called from invalid context in {f}', STACK)
add('atomic', r'BUG: using ([a-z_]+)\(\) in preemptible',
    'BUG: using {0}() in preemptible code in {f}', STACK,
    skip='dump_stack|preemption|preempt|debug_|processor_id|this_cpu')
add('atomic', r'BUG: workqueue leaked (?:lock or )?atomic',
    'BUG: workqueue leaked lock or atomic in {0}',
    more=r'last function: ([a-zA-Z0-9_]+)')

# --- no progress -------------------------------------------------------------

STALL = re.compile('apic_timer_interrupt'), AT_PC, TRACE
STALL_IRQ = re.compile('apic_timer_interrupt|Exception stack|el1h_64_irq'), \
    TRACE
add('rcu-stall', r'(?:INFO: |rcu: .*)rcu_(?:preempt|sched|bh|tasks) '
    r'(?:kthread |self-)?detected(?: expedited)? stall',
    'INFO: rcu detected stall in {f}', STALL, STALL_IRQ, FAULT,
    skip='apic_timer_interrupt|rcu', pick=frames.stalled, alt='stall in {f}',
    wandering=True)
add('soft-lockup', r'BUG: soft lockup', 'BUG: soft lockup in {f}', FAULT,
    pick=frames.stalled, alt='stall in {f}', wandering=True)
add('hard-lockup', r'[wW]atchdog: (?:Watchdog detected hard LOCKUP|CPU\d+: '
    r'Watchdog detected hard LOCKUP|Watchdog detected hard LOCKUP)',
    'hard lockup in {f}', FAULT, pick=frames.stalled, alt='stall in {f}',
    wandering=True)
add('hung-task', r'INFO: task .{0,100}? blocked (?:in I/O wait )?for more than '
    r'[0-9]+ seconds', 'INFO: task hung in {f}', STACK, pick=frames.hung,
    alt='hang in {f}', wandering=True)
add('hung-task', r"INFO: task .{0,100}? can't die for more than .* seconds",
    "INFO: task can't die in {f}", STACK, skip='schedule', alt='hang in {f}',
    wandering=True)
add('workqueue', r'BUG: workqueue lockup', 'BUG: workqueue lockup',
    wandering=True)
add('oom-kill', r'^Out of memory: Kill(?:ed)? process \d+ \((.{1,15}?)\)',
    'Out of memory: killed {0}', single=True)
add('oom-kill', r'^Memory cgroup out of memory: Kill(?:ed)? process \d+ '
    r'\((.{1,15}?)\)', 'Memory cgroup out of memory: killed {0}',
    single=True)
add('leaked-reference', r'unregister_netdevice: waiting for .* to become free',
    'unregister_netdevice: waiting for DEV to become free', single=True)

# --- pages, files, slabs -----------------------------------------------------

add('bad-page', r'BUG: Bad page (state|cache)', 'BUG: Bad page {0} in {f}',
    (re.compile('page last allocated'), TRACE), STACK,
    skip='(?:free|put|get|update|release)_page|free_unref|^_*folio|'
    'truncate_inode_pages|page_frag_free|alloc|vmap|page_owner|'
    '^bad_page|page_is_bad|free_frozen|free_pages')
add('bad-page', r'BUG: Bad page map', 'BUG: Bad page map')
add('bad-page', r'BUG: Bad rss-counter state', 'BUG: Bad rss-counter state',
    single=True)
add('bad-page', r'BUG: non-zero (nr_ptes|nr_pmds|pgtables_bytes) on freeing mm',
    'BUG: non-zero {0} on freeing mm', single=True)
add('leaked-reference', r'BUG: Dentry .* still in use \([0-9]+\) '
    r'\[(unmount) of ([^\]]+)\]', 'BUG: Dentry still in use in {0}',
    alt='BUG: Dentry still in use [{0} of {1}]')
add('leaked-reference', r'VFS: Busy inodes after unmount',
    'VFS: Busy inodes after unmount (use-after-free)', single=True)
add('oops', r'VFS: Close: file count is 0',
    'VFS: Close: file count is zero (use-after-free)')
add('slab', r'BUG kmalloc-.*: Object already free', 'BUG: Object already free')
add('slab', r'^BUG (\S{1,64}) \([^)]*\): (.*)', 'BUG {0}: {1}')

# --- WARN --------------------------------------------------------------------

# file.c:12, and the line up to it.
SRC = r'[A-Za-z0-9\-_/.]+\.[a-z]+:\d+'
BY = r'WARNING: .*'
add('odebug', BY + r'lib/debugobjects\.c.* (?:debug_print|debug_check|at)',
    'WARNING: ODEBUG bug in {f}', *WARN,
    skip='debug_|rcu|hrtimer_|timer_|work_|percpu_|vunmap|vfree|__free_|'
    'kobject_')
add('usercopy', BY + r'mm/usercopy\.c.* (?:usercopy_warn|at)',
    'WARNING: bad usercopy in {f}', *WARN, skip='usercopy|__check')
add('kobject', BY + r'lib/kobject\.c.* (?:kobject_|at)',
    'WARNING: kobject bug in {f}', *WARN, skip='kobject_')
add('warning', BY + r'fs/proc/generic\.c.* (?:proc_register|at)',
    'WARNING: proc registration bug in {f}', *WARN, skip='proc_')
add('refcount', BY + r'lib/refcount\.c.* (?:refcount_|at)',
    'WARNING: refcount bug in {f}', *WARN, skip='refcount|kobject_')
add('list-corruption', BY + r'lib/list_debug\.c', 'WARNING in {f}', *WARN)
add('warning', BY + r'mm/.*\.c.* k?.?malloc', 'WARNING: kmalloc bug in {f}',
    *WARN, skip='kmalloc|krealloc|slab|kmem')
add('warning', BY + r'mm/vmalloc\.c.*__vmalloc_node',
    'WARNING: zero-size vmalloc in {f}', *WARN)
add('warning', BY + r' usb_submit_urb', 'WARNING in {f}/usb_submit_urb', *WARN,
    skip='usb_submit_urb|usb_start_wait_urb|usb_bulk_msg|usb_interrupt_msg|'
    'usb_control_msg')
add('warning', rf'WARNING: (?:\[.*\] |.* at )?{SRC}', 'WARNING in {f}', *WARN)

# --- the rest ----------------------------------------------------------------

add('panic', r'Kernel panic - not syncing: Attempted to kill init!',
    'kernel panic: Attempted to kill init!', deadly=True)
add('panic', r"Kernel panic - not syncing: Couldn't open N_TTY ldisc",
    "kernel panic: Couldn't open N_TTY ldisc", deadly=True)
add('panic', r'Kernel panic - not syncing: (.*)', 'kernel panic: {0}',
    deadly=True)
add('bug', r'^BUG: (.+)', 'BUG: {0}')

MOST_HEAD = 300         # characters of a line that say what it begins

# How all of the above begin.
WORDS = re.compile(
    'BUG|WARNING: |INFO: |rcu: |UBSAN: |kmemleak: |Oops|[uU]nable to handle|'
    'general protection|segment-related |kasan: GPF|stack segment|PANIC|divide|'
    'invalid opcode|int3|Internal error|Unhandled fault|Alignment trap|'
    '[kK]ernel (?:panic|BUG)|[wW]atchdog|Out of memory|Memory cgroup out of|'
    'VFS: |unregister_netdevice')

# Lines like those above that are no reports.
IGNORED = re.compile(
    r'^.{1,15}\[\d+\]:? (?:segfault|bad frame|vsyscall)|ODEBUG:|DEBUG:|'
    r'_INFO:|EXT4-[Ff][Ss](?: \(.*\))?:|XFS \(\w+\): WARNING|'
    r'INFO: (?:lockdep is turned off|Stall ended before state dump start|'
    r'NMI handler|recovery required on readonly filesystem)|'
    r'(?:handler|interrupt).*took too long|'
    r'traps: \S.* ip:[0-9a-f]+ sp:|general protection fault .* error:\d+ in |'
    r'WARNING: workqueue cpumask: online intersect > possible intersect')

# A panic that another report leads to.
CONSEQUENCE = re.compile(
    r'Kernel panic - not syncing: (?:Fatal exception|.*panic_on_\w+ set|'
    r'.*panic_on_oom|hung_task: blocked tasks|softlockup: hung tasks|'
    r'RCU Stall|Hard LOCKUP|Attempted to kill |Aiee, killing|'
    r'kasan\.fault|kmsan\.panic|scheduling while atomic|'
    r'System is deadlocked on memory)')
PANIC = re.compile('Kernel panic - not syncing')
# A line of a report of an oops or BUG that has begun.
FOLLOWS = re.compile(
    r'^Oops|invalid opcode: 0000|Internal error:|PANIC: double fault|'
    r'^Kernel BUG \[#')


# What precedes a report in its line: who prints it. Names of tasks and devices
# elsewhere in a line are the guest's word.
BY_WHOM = re.compile(r'\[ |[\w.-]{1,30}(?: [\w.-]{1,30})?: ')
MOST_PREFIXES = 4


def starts_of(text):
    """Yield the positions at which a report can begin."""
    at = len(text) - len(text.lstrip(' '))
    yield at
    for _ in range(MOST_PREFIXES):
        m = BY_WHOM.match(text, at)
        if not m:
            return
        at = m.end()
        yield at


def can_begin(text):
    """Return the positions at which a line can begin a report."""
    text = text[:MOST_HEAD]
    starts = [at for at in starts_of(text) if WORDS.match(text, at)]
    return starts if starts and not IGNORED.search(text) else []


def find_rows(text):
    """Return (row, match) of each report that a line can begin, in the order of
    the table. A row that needs MORE may not fit after all."""
    starts, text = can_begin(text), text[:MOST_HEAD]
    tried = ((r, r.start.match(text, at)) for r in ROWS for at in starts)
    return [(r, m) for r, m in tried if m]

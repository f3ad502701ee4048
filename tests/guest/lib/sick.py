# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that are not well: how each is made, and what scripts/sweep must say
of it. test_sick.py runs them. To add one, add a row."""
import dataclasses

# On a busy host a guest's watchdogs report what is not the guest's fault: they
# are off, but the one that a guest is about, which waits some seconds only.
NO_STALLS = 'rcupdate.rcu_cpu_stall_suppress=1'
CALM = 'nowatchdog ' + NO_STALLS
STALLS = 'nowatchdog rcupdate.rcu_cpu_stall_timeout=4'
LOCKUPS = 'echo 2 >/proc/sys/kernel/watchdog_thresh\n'
HANGS = 'echo 3 >/proc/sys/kernel/hung_task_timeout_secs\n'


@dataclasses.dataclass(frozen=True)
class Sick:
    """A guest.

    script   what it runs, in a shell
    title    of the finding
    kind     of the finding
    status   of sweep
    alone    nothing else can be done in the same boot
    syzkaller  whether syzkaller gives the same title to the same console, or
             why it does not
    kernels  those that notice; empty: all
    arm64    the title there, if it is another one
    arm64_then  (kind, title) of what the kernel reports there as a consequence
    words    for the kernel's command line
    options  of sweep
    """
    name: str
    script: str
    title: str
    kind: str
    status: int = 1
    alone: bool = False
    syzkaller: object = True
    kernels: tuple = ()
    arm64: str = None
    arm64_then: tuple = ()
    words: str = CALM
    options: tuple = ()

    def on(self, kernel):
        """Return the same as the kernel's architecture has it."""
        if kernel.startswith('arm64-'):
            return dataclasses.replace(self, title=self.arm64 or self.title)
        return dataclasses.replace(self, arm64_then=())


def way(name):
    """Return the script that lets the module ka_sick do something, in a process
    of its own: some of them die."""
    return f"sh -c 'echo {name} >/dev/ka_sick'\n"


# After a possible deadlock this kernel checks locks no more.
LOCKDEP = 'lockdep-6.12',
NO_OWNER = 'without the owner of the page syzkaller names no function'
NO_TIMER = 'syzkaller looks for the interrupt of the timer in the stack'
NOT_THEIRS = 'syzkaller takes it for no crash'

SICK = (
    Sick('oops', way('oops'), 'BUG: unable to handle kernel NULL pointer '
         'dereference in ka_sick_oops', 'oops'),
    Sick('fault', way('fault'), 'general protection fault in ka_sick_fault',
         'oops', arm64='BUG: unable to handle kernel paging request in '
         'ka_sick_fault'),
    Sick('oops in an interrupt', way('irq'), 'BUG: unable to handle kernel '
         'NULL pointer dereference in ka_sick_oops', 'oops', alone=True),
    # arm64 takes the trap of BUG() for an NMI. The task that it ends does not
    # leave it, which the idle task notices: let it run.
    Sick('BUG', way('bug') + 'sleep 1\n', 'kernel BUG in ka_sick_bug', 'bug',
         arm64_then=(('warning', 'WARNING in ct_kernel_exit'),)),
    Sick('WARN', way('warn'), 'WARNING in ka_sick_warn', 'warning'),
    Sick('refcount', way('refcount'),
         'WARNING: refcount bug in ka_sick_count', 'refcount'),
    Sick('list corruption', way('list'), 'BUG: corrupted list in ka_sick_list',
         'list-corruption'),
    Sick('bad page', way('page'), 'BUG: Bad page state in ka_sick_page',
         'bad-page', syzkaller=NO_OWNER, kernels=('6.12', 'arm64-6.12')),
    # A kernel that does not count preempt_disable(), as Debian's of arm64, does
    # not notice.
    Sick('scheduling while atomic', way('atomic'),
         'BUG: scheduling while atomic in ka_sick_atomic', 'atomic',
         kernels=('6.12', '6.1')),
    Sick('RCU stall', way('stall'),
         'INFO: rcu detected stall in ka_sick_stall_work', 'rcu-stall',
         words=STALLS, options=('--smp', '2'), syzkaller=NO_TIMER),
    Sick('soft lockup', LOCKUPS + way('lockup'),
         'BUG: soft lockup in ka_sick_lockup_work', 'soft-lockup',
         words=NO_STALLS),
    # After an oops the kernel looks for no tasks that hang.
    Sick('hung task', HANGS + way('hung'), 'INFO: task hung in ka_sick_hung',
         'hung-task', alone=True),
    Sick('OOM kill', 'tail /dev/zero\n', 'Out of memory: killed tail',
         'oom-kill', syzkaller=NOT_THEIRS, options=('--mem', '300M')),
    Sick('panic', way('panic'), 'kernel panic: ka_sick has a reason', 'panic',
         alone=True),
    Sick('suspicious RCU', way('rcu'), 'WARNING: suspicious RCU usage in '
         'ka_sick_reader', 'lockdep', kernels=LOCKDEP),
    Sick('possible deadlock', way('deadlock'),
         'possible deadlock in ka_sick_deadlock', 'lockdep', kernels=LOCKDEP),
    Sick('sleep while atomic', way('sleep'), 'BUG: sleeping function called '
         'from invalid context in ka_sick_sleep', 'atomic', kernels=LOCKDEP),
)


def on(kernel):
    """Return the guests of a kernel, with its titles."""
    return [g.on(kernel) for g in SICK if kernel in g.kernels or
            not g.kernels and kernel not in LOCKDEP]

# SPDX-License-Identifier: GPL-2.0-or-later
"""Run one program many times, to learn how rare its failure is."""
from .process import kill_all, run_job


def repeat_job(job, times, folder, screen):
    """Run the job TIMES times, one after the other; print a line for each run
    and the number of failures at the end, also if the user ends it early.
    Return whether no run failed. The logs of failed runs stay."""
    passed, failed = 0, []
    try:
        for number in range(1, times + 1):
            screen.status(f'{job.label}, run {number} of {times}')
            result = run_job(job, folder, number, keep=False)
            if result.failed:
                failed.append(result)
                screen.say(*result.lines)
            else:
                passed += 1
            word = 'FAIL' if result.failed else 'ok'
            screen.say(f'  {word:4} {job.label}, run {number} of {times}: '
                       f'{result.seconds:.1f} s')
    except KeyboardInterrupt:
        kill_all()
        screen.say(f'# interrupted after {passed + len(failed)} of {times} '
                   'runs')
    finally:
        screen.status('')
    for result in failed:
        screen.say(f'# output of a failed run: {result.log}')
    screen.say(f'# these are runs of {job.label}, not tests:',
               f'{passed} passed, {len(failed)} failed, 0 skipped')
    return bool(passed and not failed)

"""What sleeping costs a program: delays of a rank with slack cost nothing, those of a rank that others wait for do."""

from __future__ import annotations

import os

import pytest
from harness.fallow import BARE
from harness.lab import Lab
from harness.quiet import shown

pytestmark = pytest.mark.measures

_ENOUGH = 50  # sleeps that tell
_TRIES = 12  # pairs of runs
_ROUNDS = 100  # of calls that take many steps


def _made_good(lab: Lab, mode: str, *args: str) -> float:
    """The part of the waiting rank's delays that its next waits made good."""
    trial = lab.run(mode, 2, lab.program("slack.c"), *args)
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    waiting = trial.ranks()[1]
    if lab.family.name == "mpiabi" and waiting.sleeps < _ENOUGH:  # it yields the core at each poll
        pytest.skip("others use the machine's cores: the rank did not come to sleep")
    assert waiting.wake_delay_s > 0, waiting
    assert waiting.wake_absorbed_s <= waiting.wake_delay_s
    return waiting.wake_absorbed_s / waiting.wake_delay_s


@pytest.mark.parametrize("mode", ["auto", "sleep"])
def test_only_a_rank_with_slack_makes_its_delays_good(lab: Lab, mode: str) -> None:
    """Rank 1 sleeps until rank 0 sends. Its late wake-ups are gone in its next wait, unless rank 0 waited for it."""
    # Whoever takes the cores away adds to both sides, so several pairs may be needed: 0.99 and 0.00 to 0.02 on a quiet machine.
    def pair() -> tuple[float, float]:
        return _made_good(lab, mode), _made_good(lab, mode, "answered")

    shown(pair, lambda p: p[0] > 0.5 and p[1] < 0.5 * p[0], _TRIES)


def _made_good_at_random(lab: Lab) -> float:
    """The same of two ranks that exchange more than a message, either of them late at random."""
    trial = lab.run("auto", 2, lab.program("late.c"), "1000", "500", "collective")
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    ranks = trial.ranks()
    assert sum(r.wake_delay_s for r in ranks) > 0, ranks
    return sum(r.wake_absorbed_s for r in ranks) / sum(r.wake_delay_s for r in ranks)


def test_a_delay_is_not_made_good_where_the_other_rank_waits_for_the_sleeper_in_the_same_call(lab: Lab) -> None:
    """Who comes last waits until the sleeper has taken its data, and is done before the sleeper is."""
    if lab.family.name == "mpiabi":
        pytest.skip("it does not tell there: 0.3 to 0.4 when only later waits counted, and 0.17 to 0.46 now")
    # 0.3 to 0.4 when only later waits counted
    shown(lambda: _made_good_at_random(lab), lambda share: share < 0.25, 2 * _TRIES)


def test_who_is_needed_in_the_middle_of_a_call_does_not_sleep_through_it(lab: Lab) -> None:
    """A rank in a long barrier answers locks and reads of another one, which waits for each of its wake-ups: they are paid."""
    def slept() -> float:
        trial = lab.run("auto", 2, lab.program("served.c"), "3000", "300")
        assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
        target = trial.ranks()[1]
        return target.wait_asleep_s / (target.wait_asleep_s + target.wait_awake_s)

    if lab.family.name == "openmpi":  # reads without the target's help, which sleeps all the time
        slept()
    else:
        shown(slept, lambda share: share < 0.4, _TRIES // 2)  # 0.74 to 0.76 when only the end of the call counted


def test_who_looks_at_shared_memory_wakes_nobody(lab: Lab) -> None:
    """MPI_Win_sync sends nothing: ranks that wait meanwhile are left asleep."""
    def asleep() -> float:
        trial = lab.run("sleep", 2, lab.program("shared_flag.c"), "0.5")
        assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
        waiting = trial.ranks()[1]
        return waiting.wait_asleep_s / (waiting.wait_asleep_s + waiting.wait_awake_s)

    shown(asleep, lambda share: share > 0.9, _TRIES // 2)  # 0 to 0.6 when they were woken at each look


@pytest.mark.parametrize("mode", ["auto", "sleep"])
def test_who_tests_in_vain_lets_others_sleep(lab: Lab, mode: str) -> None:
    """A rank that looks for messages all the time sends nothing by that."""
    def asleep() -> float:
        trial = lab.run(mode, 2, lab.program("polls_for_work.c"), "0.5")
        assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
        waiting = trial.ranks()[1]
        return waiting.wait_asleep_s / (waiting.wait_asleep_s + waiting.wait_awake_s)

    # 0.96 to 0.99 now; 0.01 to 0.06 when they were woken by each test, 0.25 to 0.85 by each that lasted long
    shown(asleep, lambda share: share > 0.9, _TRIES // 2)


def _seconds_with_a_stranger(lab: Lab, mode: str) -> float:
    trial = lab.run(mode, 1, lab.program("strangers.c"))
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    return float(trial.outcome.out.split()[-1])


def test_ranks_of_another_job_are_not_relied_upon_to_wake(lab: Lab) -> None:
    """A spawned rank wakes none of those that started it: their sleeps must not be planned as if it did."""
    if lab.family.name != "openmpi":
        pytest.skip("MPI_Comm_spawn does not work, or ranks yield the core at each poll")
    pairs: list[tuple[float, float]] = []
    while len(pairs) < _TRIES // 2 and not any(auto < 1.25 * bare for auto, bare in pairs):  # 1.5 to 1.6
        pairs.append((_seconds_with_a_stranger(lab, "auto"), _seconds_with_a_stranger(lab, BARE)))
    assert any(auto < 1.25 * bare for auto, bare in pairs), pairs


def _ms_a_round(lab: Lab, mode: str) -> float:
    """What a round of collective calls of many steps lasts, with one rank more than there are cores."""
    ranks = len(os.sched_getaffinity(0)) + 1
    trial = lab.run(mode, ranks, lab.program("steps.c"), str(lab.scratch / "steps"), str(_ROUNDS))
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    return float(trial.outcome.out.split()[-1])


def _us_late(lab: Lab, mode: str, how: str) -> float:
    """By how much rounds of calls for which a rank is late last longer than it is late; not all ranks are woken at each."""
    rounds = "10" if how == "window" else "40"
    trial = lab.run(mode, 8, lab.program("started.c"), rounds, "10000", how)
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    return float(trial.outcome.out.split()[-1])


def test_neighbours_wake_each_other(lab: Lab) -> None:
    """Whatever their ranks are: 9 of 18 is no distance that calls of all ranks go. Each waits for the other a hundred times. Who was woken
    is counted: on how late they were, the other ranks bear, and how fast the machine is."""
    def woken() -> int:
        trial = lab.run("sleep", 18, lab.program("across.c"), "200", "5000")
        assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
        ranks = trial.ranks()
        return min(ranks[0].wakes_sent, ranks[9].wakes_sent)

    shown(woken, lambda times: times > 75, _TRIES // 2)  # 96 to 171; 4 to 52, when MPI starts, where they slept until their time was over


@pytest.mark.parametrize("how", [[], ["parts"]], ids=["whole", "parts"])
def test_who_starts_a_persistent_request_wakes_its_peer(lab: Lab, how: list[str]) -> None:
    """Whomever the two had to do with since it was made, and for each part that is ready. Who was woken is counted: on how late they
    were, other things bear."""
    if how and lab.family.name == "openmpi":
        pytest.skip("a library of MPI 3 has none")
    trial = lab.run("sleep", 6, lab.program("prepared.c"), "200", "5000", *how)
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    ranks = trial.ranks()
    if ranks[-1].sleeps < 4 * _ENOUGH:
        pytest.skip("others use the machine's cores: the rank did not come to sleep")
    assert ranks[0].wakes_sent > 2 * _ENOUGH, ranks  # 234 and more; 31 to 42, before and after, when it woke nobody for that


# Open MPI takes a step of the target for each element of a column, in a call that is not one that waits. MPICH has room for so
# many one-sided calls at a time, and others wait until the target has answered. Where only the call's begin woke the target, the
# column took 2 s in auto and 4 to 16 in sleep (Open MPI), and the swaps in sleep 2 to 3 s (MPICH) and 3 to 7 (its version 5).
@pytest.mark.parametrize("mode", ["auto", "sleep"])
@pytest.mark.parametrize("program", ["strided.c", "swaps.c"])
def test_the_target_of_one_sided_calls_of_many_steps_does_not_sleep_through_them(lab: Lab, program: str, mode: str) -> None:
    """Nor does who waits for it, or each would wait for the other's timer."""
    def us(way: str) -> float:
        trial = lab.run(way, 2, lab.program(program))
        assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
        return float(trial.outcome.out.split()[-1])

    shown(lambda: (us(mode), us("spin")), lambda took: took[0] < 5 * took[1] + 300000, _TRIES // 2)


# Each step moves a megabyte in one poll or test, the first after a sleep at times, or in MPICH 5's reductions some KB in polls that are hardly
# longer than others. It tells of none of them; where they were not noticed, both slept until their time was over: 13 (waited), 23
# (tested) and up to 400 (auto) and 1,500 times as long (reduce). Others 1.0 to 1.6 times, before and after.
@pytest.mark.parametrize("how", ["reduce", "waited", "tested"])
def test_who_has_moved_data_in_one_poll_wakes_its_peer(lab: Lab, how: str) -> None:
    def us(mode: str) -> float:
        trial = lab.run(mode, 2, lab.program("long_sums.c"), "40", "2", how)
        assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
        return float(trial.outcome.out.split()[-1])

    shown(lambda: (us("auto"), us("sleep"), us("spin")), lambda took: max(took[:2]) < 3 * took[2] + 500, _TRIES // 4)


@pytest.mark.parametrize("how", ["started", "persistent", "fence"])
def test_a_wait_for_all_is_no_later_than_a_collective_call(lab: Lab, how: str) -> None:
    """A started collective call or a fence takes as many steps as a collective call that blocks, and wakes who takes part."""
    if how == "persistent" and lab.family.name == "openmpi":
        pytest.skip("a library of MPI 3 has none")
    def pair() -> tuple[float, float]:
        slowly = _us_late(lab, "yield", how)  # MPICH 5 takes 50 ms for what is started, with and without Fallow
        return _us_late(lab, "sleep", how), max(slowly, _us_late(lab, "sleep", "sum"))

    shown(pair, lambda us: us[0] < 2 * us[1] + 200, _TRIES // 2)  # 6 and 3 times where nobody was woken


# More than ranks that give way to each other, with a rank that is 10 ms late; nobody woke inside a call:
# the sum 2 (MPICH), 6 (its version 5) and 9 ms (Open MPI), the window 385 ms (Open MPI).
@pytest.mark.parametrize(("how", "more_us"), [("sum", 1000), ("window", 10000)])
def test_who_goes_on_in_a_call_wakes_whom_the_next_step_is_for(lab: Lab, how: str, more_us: float) -> None:
    """Also where ranks share cores: each step of a long call waited for a quarter of what it had lasted."""
    def pair() -> tuple[float, float]:
        return _us_late(lab, "auto", how), _us_late(lab, "yield", how)

    shown(pair, lambda us: us[0] < us[1] + more_us, _TRIES // 2)


def test_who_tests_in_a_loop_gives_way_to_those_that_it_waits_for(lab: Lab) -> None:
    """Where ranks share cores, MPICH polls on until the kernel takes its core, and whoever is waited for comes to work then."""
    def pair() -> tuple[float, float]:
        return _us_late(lab, "auto", "tested"), _us_late(lab, "spin", "tested")

    least = 1.5 if lab.family.name == "openmpi" else 0.3  # of 5 to 100 ms; Open MPI gives way itself
    shown(pair, lambda us: us[0] < least * us[1] + 300, _TRIES // 2)


def test_ranks_that_may_use_the_same_core_share_it(lab: Lab) -> None:
    """What counts is the processors that the ranks of a node may use together, not those that the machine has."""
    one = str(min(os.sched_getaffinity(0)))
    for ranks, said in ((2, "more ranks than processors"), (1, "a processor per rank")):
        launch = ["taskset", "-c", one, *lab.family.launch(ranks, lab.program("descriptors.c"))]
        running, _ = lab.start("auto", launch, options=["--verbose"])
        outcome = running.finish()
        assert outcome.rc == 0 and outcome.err.count(said) == ranks, outcome.describe()


def test_ranks_do_not_hold_each_other_up_where_they_share_cores(lab: Lab) -> None:
    """Each step of a collective call waits for whoever sleeps; all together must not sleep for as long as all have slept."""
    # Side by side with ranks that only give way to each other. The sum of 64 KB alone lasted 270 times as long as bare.
    def pair() -> tuple[float, float]:
        return _ms_a_round(lab, "auto"), _ms_a_round(lab, "yield")

    shown(pair, lambda ms: ms[0] < 6 * ms[1], _TRIES)


def test_who_was_stopped_while_it_slept_sleeps_on(lab: Lab) -> None:
    """A stop of half a second is no delay of the sleep's: paid as one, it takes what is earned in fifty."""
    rounds = 1000

    def sleeps() -> int:
        trial = lab.run("auto", 2, lab.program("suspended.c"), str(rounds))
        assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
        return trial.ranks()[1].sleeps

    shown(sleeps, lambda n: n > 600, _TRIES // 2)  # 800 to 1,300; 270 to 320 where it was paid

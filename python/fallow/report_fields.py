"""What each field of a report means. The schema and its documentation are made from this and the model."""

from __future__ import annotations

FIELDS = {
    "Report.schema": 'always "fallow-report"',
    "Report.version": "1; a change that breaks readers raises it, a new field does not",
    "Report.run": "the run as the launcher saw it",
    "Report.health": "how complete the record is",
    "Report.totals": "sums over all ranks and threads",
    "Report.energy": "metered and modelled energy, which never mix",
    "Report.ranks": "every rank that left a readable record, by rank",
    "Report.functions": "every MPI function that was called, most time first",
    "Report.sites": "the call sites with the most time, at most 200",
    "Report.sites_left_out": "call sites beyond those",
    "Report.gaps": "time between calls, while a rank computes",
    "Report.waits": "waits inside blocking calls, and rests in tests",
    "Report.timeline": "the last calls of every thread",
    "Run.directory": "the run directory, as it was given",
    "Run.run_id": "names the run's shared memory; empty where run.json is missing",
    "Run.command": "the command and its arguments; empty where run.json is missing",
    "Run.program": "the executable of the first rank",
    "Run.started": "local time at which the command was started, ISO 8601",
    "Run.host": "the node of the launcher",
    "Run.run_time_s": (
        "from the start of the command to its end, or to that of ranks that outlive it; the ranks' own span where the "
        "launcher was killed"
    ),
    "Run.exit_status": "of the command; null where a signal ended it or it is not known",
    "Run.signal": "that ended the command, or null",
    "Run.cpu_user_s": "user CPU time of the command and what it waited for; ranks on other nodes are not in it",
    "Run.cpu_system_s": "the same, system CPU time",
    "Run.other_busy_s": "CPU time that others used on the launcher's node meanwhile",
    "Run.stolen_s": "CPU time that the hypervisor took from that node meanwhile",
    "Run.throttled_s": (
        "for how long control groups with a limit, in which the command was started, stood still for it meanwhile: the "
        "sum over processors; null where there is no limit"
    ),
    "Run.processor_limit": "processors whose time these groups may have, or null",
    "Run.mpi": "the MPI library and its version, as it calls itself",
    "Run.families": "openmpi, mpich, mpiabi",
    "Run.modes": "wait modes in force: spin, yield, sleep, auto",
    "Run.hosts": "nodes of the ranks",
    "Run.options": "options of the runtime, by name",
    "Run.fallow_version": "that made the run",
    "Health.ranks_expected": "ranks that the program had, as far as is known",
    "Health.ranks_read": "ranks with a readable record",
    "Health.ranks_unfinished": (
        "ranks that did not reach MPI_Finalize, or have not yet; their record ends at their last call"
    ),
    "Health.early": (
        "where ranks were that did not reach the end of their program: a sentence for each such place, those that "
        "called MPI_Abort first, then where fewest were"
    ),
    "Health.unreadable": "rank files that were refused",
    "Health.events_skipped": "calls left out of the timeline because they were torn or damaged",
    "Health.threads_dropped": (
        "threads not recorded: beyond the first 64 of a rank, no room on disk, or no access to it by then"
    ),
    "Health.notes": "anything else that makes the report less than complete",
    "UnreadableFile.file": "its name",
    "UnreadableFile.reason": "offset and reason",
    "Totals.ranks": "ranks with a readable record",
    "Totals.cpu_ranks_s": "CPU time of the ranks' processes, as they saw it when they last looked",
    "Totals.wait_burnt_s": (
        "waits awake that were on a core, at most: of each rank no more than its process's CPU time, which may hold "
        "computation"
    ),
    "Totals.wake_delay_share_worst": "the same for the rank that paid the most",
    "Totals.wake_absorbed_share": "wake_absorbed_s as a share of core time",
    "Totals.wake_lasting_share_worst": (
        "wake_lasting_share of the rank where it is largest; in mode auto the budget bounds it where each rank has a "
        "core that no other process wants: where cores are short, sleeps hardly depend on it"
    ),
    "Totals.slowdown_budget": "slowdown that was accepted: 0.01 is 1 %",
    "Totals.wakes_by_peer": "sleeps that a peer on the node ended",
    "Totals.wakes_sent": "peers woken",
    "Totals.wake_send_s": "time spent waking peers",
    "Totals.calls_counted": (
        "of the calls, tests, short messages, waits for these, short collective and one-sided calls that were counted "
        "only, as the program makes many of them one after the other: how long they took is an estimate, and they are "
        "not in the timeline"
    ),
    "Totals.threads": "threads that made MPI calls",
    "Totals.run_time_s": "as in run",
    "Energy.metered": "from meters, or null where none was read",
    "Energy.modelled": "from the platform model, or null where none was applied",
    "Metered.energy_j": "sum of the counted domains; null where there are none, or one was lost, if for an interval",
    "Metered.energy_delay_js": "that energy times the time that the command took, which ranks may outlive",
    "Metered.coverage": (
        "how that sum and what is modelled differ in what they cover, in words; empty where accelerators are in neither"
    ),
    "Metered.domains": "every domain that was read",
    "Metered.measures": "what each meter's figures cover, in words",
    "MeterEnergy.meter": "kind of meter",
    "MeterEnergy.domain": "its name within the meter",
    "MeterEnergy.kind": "node, module, platform, cpu, package, core, dram, memory, accelerator or other",
    "MeterEnergy.energy_j": "while the command ran; between two readings taken for even",
    "MeterEnergy.mean_w": "energy over time",
    "MeterEnergy.time_s": "how much of the command's time that is",
    "MeterEnergy.counted": "true if it is part of the sum: the counted domains cover most, and nothing twice",
    "MeterEnergy.lost": "why it could not be read all the time, so that energy_j is too low, or null",
    "Modelled.platform": "the machine description used, with its processor; `the machine found` where none was named",
    "Modelled.energy_j": "of all nodes for the run time, from the measured residencies",
    "Modelled.energy_spinning_j": "had all waits been awake and the run shorter by the lasting delay of the worst rank",
    "Modelled.energy_delay_js": "energy_j times the run time",
    "Modelled.cores_j": "of it, the cores",
    "Modelled.cores_spinning_j": "of energy_spinning_j, the cores",
    "Modelled.power_spinning_w": "mean power of all nodes had every wait been spent awake",
    "Modelled.parts": "energy_j by what it was used for; the first seven are the cores",
    "Modelled.assumptions": "what the model takes for granted, in words",
    "RankReport.rank": "in MPI_COMM_WORLD",
    "RankReport.program": "which MPI program of the command it is a rank of: from 1, in the order of their start",
    "RankReport.label": "what tells it from the others: the rank, or program:rank where there were several",
    "RankReport.pid": "process id on its node",
    "RankReport.host": "its node",
    "RankReport.family": "openmpi, mpich or mpiabi",
    "RankReport.mode": "wait mode: spin, yield, sleep or auto",
    "RankReport.hook": (
        "the idle hook in which waits sleep: opal_progress, ucp_worker_progress, sched_yield, libfabric or none; twin: "
        "they do between looks at non-blocking calls"
    ),
    "RankReport.end": "finalized, aborted (MPI_Abort), unfinished (killed), running (as far as can be told)",
    "RankReport.is_written": "whether a process of the machine that made the report still wrote its record",
    "RankReport.last_state": (
        "what the rank was doing when its record ends: none, computing, in_mpi, waiting, asleep, io or ended"
    ),
    "RankReport.open_wait": "the wait in which its record ends, if it does in one; of several threads the longest",
    "OpenWait.function": "the MPI function",
    "OpenWait.peer": "the rank in its communicator that it waits for; -1: any, or several",
    "OpenWait.comm_size": "ranks of that communicator; 0 where that is not known",
    "OpenWait.place": "where it was called",
    "RankReport.last_call": "the last call that is over in a record that has no end; of several threads the latest",
    "LastCall.function": "the MPI function",
    "LastCall.ended_s": "when it was over, after the first rank's start",
    "LastCall.place": "where it was called",
    "Place.symbol": "the function that calls it, or MODULE+0xOFFSET; empty where that is not known",
    "Place.source": "file and line, where the program has debug information",
    "OpenWait.since_s": "when the call began, after the first rank's start",
    "OpenWait.seen_s": "when it was last seen to go on; of waits that only spin, soon after its begin",
    "RankReport.threads": "threads that made MPI calls",
    "RankReport.switches_voluntary": "context switches that the process asked for",
    "RankReport.switches_involuntary": "context switches forced on the process",
    "RankReport.cpu_user_s": "user CPU time of the process when it last looked",
    "RankReport.cpu_system_s": "system CPU time of the process when it last looked",
    "FunctionReport.function": "name of the MPI function",
    "FunctionReport.kind": "send, recv, start, wait, test, probe, collective, rma, rma_sync, io, setup or other",
    "SiteReport.function": "the MPI function called",
    "SiteReport.symbol": "the function that calls it, or MODULE+0xOFFSET",
    "SiteReport.source": "file:line, or empty",
    "SiteReport.module": "path of the executable or library; empty where it is not known",
    "SiteReport.offset": "return address as an offset in the module",
    "SiteReport.comm": "the communicator's number in the rank's own count; 65535: several, not told apart",
    "SiteReport.comm_size": (
        "its size, the largest where one call made several; of a program with another number of ranks it is another row"
    ),
    "SiteReport.ranks": "ranks that called from here",
    "SiteReport.gap_s": "time between the call before and the calls from here",
    "SiteReport.wait_max_s": "the longest wait here",
    "HistogramReport.papers": "below 20 us, 20 to 200 us, above",
    "HistogramReport.log2": "powers of two, from the first to the last that holds anything",
    "HistogramReport.none_count": "of them, below 2 ns: calls without a gap before them, blocking calls that did not "
    "wait at all",
    "Bin.low_s": "smallest duration",
    "Bin.high_s": "first duration beyond; null: no limit",
    "Bin.count": "how many",
    "Bin.time_s": "their sum",
    "Bin.count_share": "of all counts",
    "Bin.time_share": "of all time",
    "Timeline.origin_ns": "instant from which the rows count, nanoseconds since the epoch",
    "Timeline.functions": "names of functions; events refer to their positions",
    "Timeline.kinds": "kinds of those functions",
    "Timeline.rows": "one a thread",
    "TimelineRow.thread": "0 is the first thread of the rank that made a call",
    "TimelineRow.rank": "in MPI_COMM_WORLD",
    "TimelineRow.label": "as in ranks; with a thread other than the first, .thread",
    "TimelineRow.calls": "calls that the thread made; events has the last of them that were not counted only",
    "TimelineRow.end": "as in ranks",
    "TimelineRow.events": "[enter_ns, duration_ns, function, awake_us, asleep_us, peer, size_bytes]; peer -1 is "
    "none or any, -2 several",
    "Residency.computing_s": "between calls",
    "Residency.transfer_s": "inside calls, other than waiting",
    "Residency.wait_awake_s": "waiting for others, on the core; in modes spin and yield, and where ranks share cores, "
    "also moving what was waited for",
    "Residency.wait_asleep_s": "waiting for others, off the core",
    "Residency.io_s": "inside file access",
    "calls": "MPI calls",
    "residency": "where the core time went",
    "core_time_s": "time of all its threads since their first MPI call; the five residencies add up to it",
    "mpi_share": "share of core time inside MPI calls, file access included",
    "wait_asleep_share": "share of the waiting that was slept",
    "wake_delay_s": "time by which sleeps outlasted the waits, an upper estimate",
    "wake_delay_share": "wake_delay_s as a share of core time",
    "wake_absorbed_s": "of wake_delay_s, what later waits made good: the rank would only have waited longer, and no "
    "other rank had waited for it meanwhile; on several nodes estimated from when later messages came",
    "wake_lasting_share": "the rest of wake_delay_s as a share of core time",
    "sleeps": "times that a thread was put to sleep",
    "sent_bytes": "as counts and datatypes given to the calls say; a collective call counts here alone, once at each "
    "of its ranks, whether that sends there or receives",
    "received_bytes": "as counts and datatypes given to the calls say: buffers as posted, which messages may not "
    "fill; collective calls are not in it",
    "time_s": "inside these calls",
    "size_bytes": "as counts and datatypes given to the calls say: buffers as posted, which messages may not "
    "fill; of calls that send and receive, what they send",
    "wait_awake_s": "of it, waiting for others on the core",
    "wait_asleep_s": "of it, waiting for others off the core",
}
"""By "Class.field", or by "field" where it means the same everywhere."""


def meaning(kind: str, field: str) -> str:
    """What a field means; KeyError where nobody wrote it down."""
    return FIELDS.get(f"{kind}.{field}") or FIELDS[field]

"""What of this machine Fallow can use: a list of findings, each with what it means and how to get it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fallow import __version__, energy, environment, mpis, native, sampling, sleeptest, sysload, text
from fallow.coverage import FAMILIES

if TYPE_CHECKING:
    from fallow.resttest import RestTest

OK, NOTE, MISSING = "ok", "note", "missing"
_BUILT = "runtime built"
_REINSTALL = "install the package anew: pip install ."
_ELSEWHERE = "install the package into a virtual environment whose path has neither"
_LOADABLE = "install it where all may read (chmod -R a+rX on the directory) and execute"


@dataclass(frozen=True)
class Finding:
    """One thing looked for. `state` is "ok", "note" (fine without) or "missing" (Fallow does less without)."""

    group: str
    name: str
    state: str
    found: str
    remedy: str = ""


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def _fallow() -> Iterator[Finding]:
    group = "Fallow"
    where = str(Path(__file__).parent)
    yield Finding(group, "version", OK, f"{__version__}, Python {platform.python_version()}, {where}")
    problem = native.module_problem()
    yield Finding(group, "native module", MISSING if problem else OK, problem or "loads")
    library = native.library(environment.PRELOAD_LIBRARY)
    problem = environment.preload_problem(library)
    remedy = _REINSTALL if library is None else _LOADABLE if "cannot be loaded" in problem else _ELSEWHERE
    if library is None and os.environ.get("FALLOW_LIBRARY_DIR"):
        remedy = "unset it, or name the directory in which that lies (cmake --install puts it into PREFIX/lib/fallow)"
    yield Finding(group, "preload library", MISSING if problem else OK, problem or str(library), remedy)
    for name in os.environ.get("LD_PRELOAD", "").replace(" ", ":").split(":"):
        if Path(name).name == environment.PRELOAD_LIBRARY:
            found = f"{name}: MPI programs started here run under it, also without fallow run"
            yield Finding(group, "LD_PRELOAD", NOTE, found, "unset LD_PRELOAD, unless that is meant")
    tool = shutil.which("addr2line")
    remedy = "install binutils (Debian: apt install binutils) to see function names in place of offsets"
    yield Finding(group, "addr2line", OK if tool else NOTE, tool or "not installed", remedy)


def _mpis() -> Iterator[Finding]:
    group = "MPI"
    here = mpis.find()
    for family in FAMILIES:
        found = here[family]
        name = mpis.NAMES[family]
        runtime = native.library(f"libfallow-rt-{family}.so")
        places = ", ".join([*found.libraries, *found.compilers]) or "not found"
        problem = native.loading_problem(runtime) if runtime is not None else ""
        if problem:
            yield Finding(group, name, MISSING, problem, _LOADABLE)
        elif runtime is not None and found.libraries:
            yield Finding(group, name, OK, f"{places}; {_BUILT}")
        elif runtime is not None:
            remedy = "load its module, or install it; programs that know where their library lies run without that"
            yield Finding(group, name, NOTE, f"library not found; {_BUILT}", remedy)
        elif found.libraries:
            remedy = f"{mpis.HEADERS[family]}, then install Fallow anew: pip install ."
            yield Finding(group, name, MISSING, f"{places}; its runtime was not built", remedy)
        else:
            yield Finding(group, name, NOTE, places, mpis.HEADERS[family] + " if your programs use it")


def meters(root: Path, patience_s: float = sampling.PATIENCE_S) -> Iterator[Finding]:
    """Those of the machine, what keeps others from being read, and what the model takes the machine for."""
    group = "Energy"
    search = native.part("find_meters")
    if not callable(search):
        yield Finding(group, "meters", MISSING, "this build reads none", _REINSTALL)
        return
    try:
        found = sampling.answer_of(lambda: search(str(root)), patience_s)
    except TimeoutError as error:
        yield Finding(group, "meters", MISSING, str(error), sampling.HANGS_REMEDY)
        return
    for meter in found:
        domains = ", ".join(domain.name for domain in meter.domains)
        yield Finding(group, meter.name, OK, f"{domains}: {meter.measures}")
    for missing in found.missing:
        yield Finding(group, missing.name, NOTE, missing.reason, missing.remedy)
    machine = energy.platform("", None)
    if machine is not None:
        names = ", ".join(energy.platform_names()) or "none"
        of = f"{machine.cpu_model}, {machine.cores} cores"
        what = f"{machine.name} ({of}) where no other is named: --platform takes {names} or a TOML file"
        yield Finding(group, "model", OK, what)


def _count(root: Path, pattern: str) -> int:
    return sum(1 for _ in root.glob(pattern))


def _controls(root: Path) -> Iterator[Finding]:
    group = "Controls"
    cpu = root / "sys/devices/system/cpu"
    unused = "not used yet"
    governor = _text(cpu / "cpu0/cpufreq/scaling_governor")
    found = f"{_text(cpu / 'cpu0/cpufreq/scaling_driver')}, governor {governor}; {unused}" if governor else None
    yield Finding(group, "cpufreq", OK if found else NOTE, found or f"no frequency control here; {unused}")
    states = [_text(p) or "?" for p in sorted(cpu.glob("cpu0/cpuidle/state*/name"))]
    remedy = "sleeping cores rest as deeply as the hypervisor or the kernel's default lets them"
    yield Finding(group, "cpuidle", OK if states else NOTE, ", ".join(states) or "no idle states shown", remedy)
    msr = _count(root, "dev/cpu/[0-9]*/msr") + _count(root, "dev/cpu/[0-9]*/msr_safe")
    yield Finding(group, "MSR", OK if msr else NOTE, f"{msr} devices; {unused}" if msr else f"no device; {unused}")
    flags = set((_text(root / "proc/cpuinfo") or "").split())
    for flag, name in (("waitpkg", "umwait, tpause"), ("mwaitx", "mwaitx")):
        use = "used while a wait spins" if flag in flags else "this CPU lacks it"
        yield Finding(group, name, OK if flag in flags else NOTE, use)


def _cores(root: Path) -> Finding:
    cores, limit = len(os.sched_getaffinity(0)), sysload.processor_limit(root)
    found = f"{cores} of {os.cpu_count()} for this process, kernel {platform.release()}"
    if limit is None or limit >= cores:
        return Finding("System", "cores", OK, found)
    remedy = (
        "what runs beyond the limit stands still for part of each tenth of a second, waiting or not: run no more ranks "
        "than that, or give whole cores in place of a share of all (docker: --cpuset-cpus, not --cpus)"
    )
    return Finding("System", "cores", NOTE, f"{found}; a control group limits it to the time of {limit:g}", remedy)


def _limits(root: Path) -> Iterator[Finding]:
    group = "System"
    clock = _text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown"
    flags = set((_text(root / "proc/cpuinfo") or "").split())
    steady = {"constant_tsc", "nonstop_tsc"} <= flags
    counter = (
        "time stamp counter steady" if steady else "time stamp counter not known to be steady: clock_gettime is used"
    )
    yield Finding(group, "clock", OK if steady else NOTE, f"kernel uses {clock}; {counter}")
    sleep = sleeptest.measure()
    state = OK if sleep.median_s < 200e-6 else NOTE
    yield Finding(
        group,
        "sleep",
        state,
        f"50 us asked take {sleep.median_s * 1e6:.0f} us (one in ten {sleep.worst_tenth_s * 1e6:.0f})",
    )
    shm = root / "dev/shm"
    writable = os.access(shm, os.W_OK)
    free = shutil.disk_usage(shm).free >> 20 if writable else 0
    remedy = "mount a tmpfs at /dev/shm: ranks of a node wake each other through it"
    yield Finding(
        group, "shared memory", OK if writable else MISSING, f"{free} MiB free" if writable else "not writable", remedy
    )
    yield _cores(root)
    paranoid = _text(root / "proc/sys/kernel/perf_event_paranoid")
    open_perf = paranoid in ("-1", "0")
    remedy = "sysctl kernel.perf_event_paranoid=0 opens the energy counters of perf to users; not used yet"
    yield Finding(group, "perf", OK if open_perf else NOTE, f"perf_event_paranoid {paranoid or 'absent'}", remedy)
    scope = _text(root / "proc/sys/kernel/yama/ptrace_scope")
    yield Finding(group, "ptrace", OK, f"ptrace_scope {scope or 'absent'}; Fallow does not trace processes")
    user = "root" if os.geteuid() == 0 else f"uid {os.geteuid()}"
    yield Finding(group, "privileges", OK, f"{user}; none are needed to save core time, some meters ask for more")


def resting(test: RestTest) -> Finding:
    """What the test of resting cores says."""
    if test.disturbed:
        taken = text.percent(1 - test.core_share, 0)
        found = f"not known: others had a core for {taken} of the time in which the test was to have it"
        return Finding("System", "rest", NOTE, found, "try again when nothing else runs here")
    found = (
        f"computation takes {test.median:.3f} times as long on cores that rest 0.3 ms every 4 ms "
        f"({min(test.ratios):.3f} to {max(test.ratios):.3f} in {len(test.ratios)} turns)"
    )
    remedy = (
        "so it does under any program that gives its cores up: the hypervisor's doing, or the frequency governor's "
        "(try performance); a program that waits little is better left to spin here"
    )
    return Finding("System", "rest", NOTE if test.slower else OK, found, remedy)


def examine(root: Path = Path("/")) -> list[Finding]:
    """Everything, in the order in which it is read."""
    return [*_fallow(), *_mpis(), *meters(root), *_controls(root), *_limits(root)]


def works(findings: list[Finding]) -> bool:
    """True if Fallow can do its main work for at least one MPI here."""
    preload = all(f.state == OK for f in findings if f.group == "Fallow" and f.state != NOTE)
    return preload and any(f.found.endswith(_BUILT) for f in findings if f.group == "MPI") and sys.platform == "linux"

"""`fallow doctor` and the coverage lists."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from fallow import cli_doctor, coverage, doctor, resttest, sysload, text
from fallow.doctor import Finding
from fallow.errors import UserError
from fallow.text import Style

ROWS = [
    {"name": "MPI_Recv", "kind": "recv", "blocks": True, "treatment": "recorded, waits sleep", "why": ""},
    {"name": "MPI_Iprobe", "kind": "test", "blocks": False, "treatment": "recorded, passes through", "why": "returns"},
    {"name": "MPI_Comm_rank", "kind": "local", "blocks": False, "treatment": "not wrapped", "why": "local"},
]


@pytest.fixture
def lists(tmp_path, monkeypatch):
    monkeypatch.setenv("FALLOW_LIBRARY_DIR", str(tmp_path))
    (tmp_path / "coverage-openmpi.json").write_text(json.dumps(ROWS))
    return tmp_path


def test_coverage_is_grouped_and_counted(lists, fallow):
    functions = coverage.load("openmpi")["openmpi"]
    assert [kind for kind, _ in coverage.by_kind(functions)] == ["recv", "local", "test"]
    assert coverage.treatments(functions) == {
        "recorded, waits sleep": 1, "recorded, passes through": 1, "not wrapped": 1,
    }  # fmt: skip
    env = {"FALLOW_LIBRARY_DIR": str(lists)}
    out = fallow("doctor", "--coverage", "openmpi", env=env).stdout
    assert out.splitlines()[-1].split() == ["3", "functions"]
    data = json.loads(fallow("doctor", "--coverage", "openmpi", "--json", env=env).stdout)
    assert data["openmpi"] == ROWS


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_coverage_fits_into_the_terminal(columns):
    """In files and pipes a function is one line, for grep."""
    why = "prepares a persistent request; the event that moves data is its MPI_Start"
    functions = [coverage.Function(**row) for row in [*ROWS, ROWS[0] | {"name": "MPI_Neighbor_alltoallw_init", "why": why}]]
    lines = list(cli_doctor._coverage_lines("openmpi", functions, Style(False, True, columns)))
    assert max(map(len, lines)) <= columns
    piped = list(cli_doctor._coverage_lines("openmpi", functions, Style(False, True, columns, breaks=False)))
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(piped).split())
    assert [line.split()[0] for line in piped if why in line] == ["MPI_Neighbor_alltoallw_init"]


@pytest.mark.parametrize("content", ["", "{}", '[{"name": 1}]'])
def test_a_broken_list_is_the_users_error(lists, content):
    (lists / "coverage-openmpi.json").write_text(content)
    if content == "{}":
        assert coverage.load("openmpi") == {"openmpi": []}
        return
    with pytest.raises(UserError, match="coverage-openmpi"):
        coverage.load("openmpi")


def test_doctor_on_a_machine_with_nothing(tmp_path):
    (tmp_path / "dev/shm").mkdir(parents=True)
    findings = doctor.examine(tmp_path)
    assert {f.group for f in findings} == {"Fallow", "MPI", "Energy", "Controls", "System"}
    assert all(f.found for f in findings)
    assert {f.state for f in findings} <= {"ok", "note", "missing"}


def test_doctor_reads_its_root(tmp_path):
    for path, content in (
        ("proc/cpuinfo", "flags : constant_tsc nonstop_tsc waitpkg"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1E"),
        ("dev/cpu/0/msr", ""),
        ("dev/shm/x", ""),
        ("proc/sys/kernel/perf_event_paranoid", "nonsense"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    found = {f.name: f for f in doctor.examine(tmp_path)}
    assert "intel_pstate, governor powersave" in found["cpufreq"].found
    assert found["cpuidle"].found == "C1E"
    assert found["MSR"].found.startswith("1 device")
    assert found["umwait, tpause"].state == "ok"
    assert "steady" in found["clock"].found


def test_figures_of_the_machine_have_their_units(tmp_path, monkeypatch):
    (tmp_path / "dev/shm").mkdir(parents=True)
    for flags, perf in (("constant_tsc", "2"), ("constant_tsc nonstop_tsc", "0")):
        for path, content in (("proc/cpuinfo", f"flags : {flags}"), ("proc/sys/kernel/perf_event_paranoid", perf)):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content)
        monkeypatch.setattr(doctor.sleeptest, "measure", lambda: doctor.sleeptest.SleepTime(60e-6, 95e-6))
        monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: SimpleNamespace(free=3 << 20))
        found = {f.name: f for f in doctor.examine(tmp_path)}
        assert found["sleep"].found == "50 us asked take 60 us (one in ten 95)"
        assert found["shared memory"].found == "3 MiB free"
        steady = "nonstop_tsc" in flags
        assert (found["clock"].state, found["perf"].state) == (("ok", "ok") if steady else ("note", "note"))
        assert ("not known to be steady" in found["clock"].found) is not steady


@pytest.mark.parametrize(
    ("module", "library", "built", "works"),
    [("ok", "ok", (True, False), True), ("missing", "ok", (True,), False), ("ok", "missing", (True,), False), ("ok", "ok", (False, False), False)],
)
def test_it_works_where_an_mpi_has_its_runtime(module, library, built, works):
    """Notes, such as of a missing addr2line, do not stand in the way."""
    mine = [Finding("Fallow", "native module", module, ""), Finding("Fallow", "preload library", library, ""), Finding("Fallow", "addr2line", "note", "")]
    mpis = [Finding("MPI", "some", "ok" if b else "missing", "libmpi.so; runtime built" if b else "libmpi.so; its runtime was not built") for b in built]
    assert doctor.works([*mine, *mpis]) is works


def test_the_command(fallow):
    out = fallow("doctor")
    assert out.returncode in (0, 1)
    assert "Traceback" not in out.stderr
    data = json.loads(fallow("doctor", "--json").stdout)
    assert data["works"] is (out.returncode == 0)
    assert not [f["name"] for f in data["findings"] if f["state"] == "ok" and f["remedy"]]  # nothing to mend there


def test_turns_are_compared_with_their_neighbours():
    drifting = [1.0, 1.1 * 1.02, 1.2, 1.3 * 1.04, 1.4]
    assert resttest.compare_turns(drifting) == pytest.approx([1.02, 1.04])


@pytest.mark.parametrize(
    ("ratios", "state"),
    [((1.02, 1.03, 1.01, 1.02), "note"), ((1.02, 1.03, 0.98, 1.02), "ok"), ((1.005, 1.004, 1.006, 1.008), "ok"), ((0.98, 0.97, 0.99, 0.98), "ok")],
)  # fmt: skip
def test_resting_is_blamed_only_where_nearly_all_turns_agree(ratios, state):
    finding = doctor.resting(resttest.RestTest(ratios))
    assert finding.state == state
    assert f"{sorted(ratios)[0]:.3f} to {sorted(ratios)[3]:.3f} in 4 turns" in finding.found


def test_beside_others_nothing_is_said_of_resting():
    """Who rests gets a core back sooner: beside a build, resting cores seemed to compute twelve times as fast."""
    finding = doctor.resting(resttest.RestTest((0.08, 0.09, 0.08), core_share=0.4))
    assert (finding.state, finding.remedy) == ("note", "try again when nothing else runs here")
    assert finding.found == "not known: others had a core for 60 % of the time in which the test was to have it"


def test_every_core_takes_its_turns():
    shown = []
    test = resttest.measure(shown.append, block_s=0.05)
    ratios = test.ratios
    assert 0 < test.core_share < 1.1
    assert len(ratios) == 4 * len(os.sched_getaffinity(0))
    assert all(r > 0 for r in ratios)
    assert shown == sorted(shown)


def test_version_and_help(fallow):
    assert fallow("--version").stdout.startswith("fallow 0.1.0")
    for command in ("run", "report", "doctor", "config"):
        assert "examples:" in fallow(command, "--help").stdout


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 s"), (5e-9, "5 ns"), (1.5e-5, "15 us"), (0.25, "250 ms"), (3.14159, "3.14 s"), (42.0, "42.0 s"),
     (250, "250 s"), (1200, "20.0 min"), (7200, "2.00 h"), (9.996e-7, "1 us"), (9.994e-7, "999 ns"), (9.999e-4, "1 ms"), (-0.9996, "-1 s"),
     (9.996, "10.0 s"), (99.96, "100 s"), (599.4, "599 s"), (599.6, "10.0 min"), (3596, "59.9 min"), (3599, "1.00 h"), (-2e-3, "-2 ms")],
)  # fmt: skip
def test_durations(value, shown):
    assert text.seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 J"), (4.2e-5, "42 uJ"), (0.0347, "34.7 mJ"), (9.999e-4, "1 mJ"), (0.9999, "1 J"), (9.996, "10.0 J"), (3.456, "3.46 J"), (42.04, "42.0 J"), (9999, "9999.0 J"),
     (9999.96, "10.00 kJ"), (12345, "12.35 kJ"), (3599999, "1.00 kWh"), (7.2e6, "2.00 kWh"), (-0.5, "-500 mJ")],
)  # fmt: skip
def test_energies(value, shown):
    assert text.joules(value) == shown


def test_what_rounds_to_nothing_has_no_sign():
    assert [text.percent(v) for v in (-0.0001, -0.001, 0.0001)] == ["0.0 %", "-0.1 %", "0.0 %"]


def test_sizes():
    assert [text.size(v) for v in (12, 1023, 2**20 - 1, 2**20, 6.25 * 2**50, 2**63)] == [
        "12 B", "1023 B", "1.0 MiB", "1.0 MiB", "6.3 PiB", "8.0 EiB"
    ]  # fmt: skip


def test_energy_delays():
    assert [text.joule_seconds(v) for v in (0.0123, 0.9999, 3.21, 456.78, 999.97, 1886.9, 9996, 12345, 2.5e6, 1.296e13)] == [
        "12.3 mJ s", "1 J s", "3.21 J s", "456.8 J s", "1.00 kJ s", "1.89 kJ s", "10.0 kJ s", "12.3 kJ s", "2.50 MJ s", "13.0 TJ s"
    ]  # fmt: skip


def test_a_path_that_cannot_be_preloaded_is_no_reason_to_install_anew_there(fallow, tmp_path):
    place = tmp_path / "my environment"
    place.mkdir()
    (place / "libfallow.so").touch()
    findings = json.loads(fallow("doctor", "--json", env={"FALLOW_LIBRARY_DIR": str(place)}).stdout)["findings"]
    found = next(f for f in findings if f["name"] == "preload library")
    assert found["state"] == "missing" and "space or colon" in found["found"]
    assert found["remedy"] == "install the package into a virtual environment whose path has neither"


def test_paths_and_commands_are_not_broken():
    """They are there to be copied."""
    path, target = "/opt/a-long-name/" + "x" * 120 + "/libfallow.so", "/sys/class/powercap/intel-rapl:0/energy_uj"
    findings = [doctor.Finding("Fallow", "preload library", doctor.NOTE, path, f"chmod a+r {target}")]
    for width in (40, 80, 112):
        lines = list(cli_doctor._lines(findings, Style(False, True, width)))
        words = [word for line in lines for word in line.split()]
        assert path in words and target in words


_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
"""


def test_a_limit_of_processor_time_is_told(tmp_path):
    def tree(**files: str) -> Path:
        for name, content in files.items():
            file = tmp_path / name.replace("__", ".").replace("--", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        return tmp_path

    assert sysload.processor_limit(tmp_path) is None
    tree(**{"proc--self--mountinfo": _MOUNTS, "proc--self--cgroup": "0::/job/step\n", "sys--fs--cgroup--job--step--cpu__max": "max 100000\n"})
    assert sysload.processor_limit(tmp_path) is None
    tree(**{"sys--fs--cgroup--job--cpu__max": "50000 100000\n"})  # of the one above
    assert sysload.processor_limit(tmp_path) == 0.5
    found = {f.name: f for f in doctor.examine(tmp_path)}["cores"]
    assert found.state == doctor.NOTE and found.found.endswith("; a control group limits it to the time of 0.5") and found.remedy
    tree(**{"proc--self--cgroup": "4:cpu,cpuacct:/a\nbroken\n1:name=systemd:/\n", "sys--fs--cgroup--cpu--a--cpu__cfs_quota_us": "25000\n",
            "sys--fs--cgroup--cpu--a--cpu__cfs_period_us": "100000\n"})  # fmt: skip
    assert sysload.processor_limit(tmp_path) == 0.25
    tree(**{"sys--fs--cgroup--cpu--a--cpu__cfs_quota_us": "-1\n"})
    assert sysload.processor_limit(tmp_path) is None
    tree(**{"proc--self--cgroup": "0::/../..\n", "sys--fs--cgroup--cpu__max": "150000 100000\n"})  # as a container sees it
    assert sysload.processor_limit(tmp_path) == 1.5
    tree(**{"sys--fs--cgroup--cpu__stat": "nr_throttled 3\nthrottled_usec 2500000\n", "proc--stat": "cpu 0 0 0 0 0 0 0 0 0 0\n"})
    assert sysload.read(tmp_path) == sysload.CpuTimes(0, 0, 2.5)


def _fake_mpi(folder, other=False):
    """Open MPI as a module gives it: its mpicc alone, beside a library that the dynamic linker does not know."""
    (folder / "lib").mkdir(parents=True)
    (folder / "bin").mkdir()
    head = bytearray(Path("/proc/self/exe").read_bytes()[:64])
    head[18] ^= 0xFF if other else 0
    (folder / "lib/libmpi.so.40.1.0").write_bytes(head)
    (folder / "lib/libmpi.so").symlink_to("libmpi.so.40.1.0")
    for name, line in (("mpicc", f"echo 'gcc -I\"{folder}/include\" -L\"{folder}/lib\" -lmpi'"), ("ldconfig", "exit 0")):
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / "bin" / name).chmod(0o755)
    return {"PATH": str(folder / "bin"), "LD_LIBRARY_PATH": ""}


def _open_mpi(fallow, env):
    rows = json.loads(fallow("doctor", "--json", env=env).stdout)["findings"]
    return next(row for row in rows if row["name"] == "Open MPI")


def test_an_mpi_of_a_module_is_found_by_its_compiler(fallow, tmp_path):
    found = _open_mpi(fallow, _fake_mpi(tmp_path / "mpi"))
    assert found["state"] == "ok"
    assert found["found"] == f"{tmp_path}/mpi/lib/libmpi.so.40.1.0, {tmp_path}/mpi/bin/mpicc; runtime built"


def test_a_library_that_is_not_there_or_not_for_this_processor_is_not_said_to_be(fallow, tmp_path):
    env = _fake_mpi(tmp_path / "mpi", other=True)
    for places in ("", str(tmp_path / "mpi/lib")):
        found = _open_mpi(fallow, env | {"LD_LIBRARY_PATH": places})
        assert (found["state"], found["found"]) == ("note", "library not found; runtime built")
        assert "load its module" in found["remedy"]


def test_what_is_preloaded_already_is_told(fallow, tmp_path):
    out = fallow("doctor", env={"LD_PRELOAD": f"{tmp_path}/libfallow.so"})
    assert out.returncode == 0 and "also without fallow run" in out.stdout


def test_how_busy_the_machine_is_is_told_in_seconds(tmp_path):
    """Idle time and waits for disks are not busy."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu  100 200 400 800 1600 3200 6400 12800 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    tick = os.sysconf("SC_CLK_TCK")
    assert sysload.read(tmp_path) == sysload.CpuTimes((100 + 200 + 400 + 3200 + 6400) / tick, 12800 / tick)
    assert sysload.read(tmp_path / "nowhere") is None


def test_the_least_of_the_limits_above_counts(tmp_path):
    groups = tmp_path / "sys/fs/cgroup"
    (groups / "job/step").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/job/step\n")
    (tmp_path / "proc/self/mountinfo").write_text(_MOUNTS)
    for group, limit in (("job/step", "400000 100000"), ("job", "150000 100000"), ("", "max 100000")):
        (groups / group / "cpu.max").write_text(limit + "\n")
    assert sysload.processor_limit(tmp_path) == 1.5

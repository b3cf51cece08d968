"""`fallow run` without MPI: what passes through, what is recorded, and every way in which ours may fail."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest


def record(tmp_path: Path) -> dict:
    (path,) = tmp_path.glob("fallow-run-*/run.json")
    return json.loads(path.read_text())


def test_streams_and_status_pass_through(run, tmp_path):
    out = run("-q", "--", "sh", "-c", "cat; echo err >&2; exit 37", input="hello\n")
    assert (out.returncode, out.stdout, out.stderr) == (37, "hello\n", "err\n")
    data = record(tmp_path)
    assert data["exit_status"] == 37
    assert data["signal"] is None
    assert data["command"][0] == "sh"
    assert data["with_fallow"] is True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE, signal.SIGINT])
def test_a_signal_ends_us_as_it_ended_the_command(run, tmp_path, number):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background was told to ignore it
    try:
        out = run("-q", "--", "sh", "-c", f"kill -{int(number)} $$")
    finally:
        signal.signal(signal.SIGINT, before)
    assert out.returncode == -number
    assert record(tmp_path)["signal"] == number


@pytest.mark.parametrize("ours", [["-q", "--"], ["-q"]])
def test_two_dashes_after_the_command_are_its_own(run, ours):
    out = run(*ours, "sh", "-c", 'printf "[%s]" "$@"', "x", "a", "--", "b", "--", "--mode", "c")
    assert (out.returncode, out.stdout, out.stderr) == (0, "[a][--][b][--][--mode][c]", "")


def test_what_cannot_be_started_has_the_shells_status(run):
    assert run("--", "no-such-command-here").returncode == 127
    assert run("--", "/etc/passwd").returncode == 126
    nameless = run("--", "", "-n", "2", "./app")
    assert (nameless.returncode, nameless.stderr) == (127, "fallow: '': command not found\n")


@pytest.mark.parametrize(("content", "status", "said"), [
    (b"#!/no/interpreter\n", 127, "the interpreter that its first line names (/no/interpreter) is not there, which it needs"),
    (b"#!/bin/sh\r\n", 127, "the interpreter that its first line names (/bin/sh\\r) is not there, which it needs"),
    (b"\x7fELF\x02\x01\x01\0 of another processor", 126, "Exec format error"),
])  # fmt: skip
def test_a_file_that_cannot_be_started_is_told_why(run, tmp_path, content, status, said):
    """It is there, so "not found" leads nowhere; and no shell takes a program of another processor for a script."""
    (tmp_path / "job").write_bytes(content)
    (tmp_path / "job").chmod(0o755)
    out = run("--", "./job")
    assert (out.returncode, out.stderr) == (status, f"fallow: ./job: {said}\n")


def test_what_cannot_be_started_leaves_no_record(run, tmp_path):
    before = set(tmp_path.iterdir())
    assert run("--trace", "app.ftr", "--", "/no/such/program").returncode == 127
    assert set(tmp_path.iterdir()) == before
    (tmp_path / "named").mkdir()
    assert run("--out", "named", "--", "/no/such/program").returncode == 127
    assert list((tmp_path / "named").iterdir()) == []


def test_a_run_with_fallow_switched_off_is_said_to_be_so(run):
    for out in (run("--off", "--", "true"), run("--", "true", env={"FALLOW_OFF": "yes"})):
        assert out.returncode == 0 and "nothing to report: Fallow was switched off" in out.stderr
    assert "did the command start an MPI program?" in run("--", "true").stderr


def test_a_script_without_a_first_line_runs(run, tmp_path):
    script = tmp_path / "script"
    script.write_text("exit 9\n")
    script.chmod(0o755)
    assert run("-q", "--", script).returncode == 9


def test_the_environment(run, tmp_path, fake_library):
    out = run("-q", "--mode", "sleep", "--no-wake", "--", "env", env={"LD_PRELOAD": "", "FALLOW_SLOWDOWN": "3%"})
    env = dict(line.split("=", 1) for line in out.stdout.splitlines() if "=" in line)
    assert env["LD_PRELOAD"] == str(fake_library / "libfallow.so")
    assert env["FALLOW_MODE"] == "sleep"
    assert env["FALLOW_WAKE"] == "0"
    assert env["FALLOW_SLOWDOWN"] == "3%"
    assert Path(env["FALLOW_DIR"]).parent == tmp_path
    assert env["FALLOW_RUN_ID"] == record(tmp_path)["run_id"]
    assert "OMPI_MCA_mca_base_env_list" not in env
    sources = record(tmp_path)["option_sources"]
    assert (sources["mode"], sources["slowdown"], sources["hook"]) == ("flag", "environment", "default")


def test_what_was_preloaded_stays(run, fake_library):
    other = shutil.copy(fake_library / "libfallow.so", fake_library / "other.so")
    out = run("-q", "--", "env", env={"LD_PRELOAD": str(other)}).stdout
    assert f"LD_PRELOAD={fake_library}/libfallow.so:{other}\n" in out


def test_a_run_inside_another_installations_is_its_own(run, fake_library, tmp_path):
    """Both libraries in one process would record everything twice; daemons on other nodes would serve the outer run."""
    outer = tmp_path / "site" / "libfallow.so"
    agents = [f"{x}=" for x in ("OMPI_MCA_orte_launch_agent", "PRTE_MCA_prte_launch_agent")]
    env = {"LD_PRELOAD": f"{outer}:/lib/tool.so"} | {x[:-1]: f"env LD_PRELOAD={outer} FALLOW_DIR=/outer orted" for x in agents}
    out = run("-q", "--out", tmp_path / "inner", "--", "env", env=env).stdout
    assert f"LD_PRELOAD={fake_library}/libfallow.so:/lib/tool.so\n" in out
    told = [line for line in out.splitlines() if line.startswith(tuple(agents))]
    assert len(told) == 2 and all(f"FALLOW_DIR={tmp_path}/inner " in line and str(outer) not in line for line in told)
    quoted = run("-q", "--out", tmp_path / "a folder", "--", "env", env=env).stdout
    assert not any(line.startswith(tuple(agents)) for line in quoted.splitlines())


def test_what_a_run_inside_another_records_is_left_to_that(run, tmp_path):
    """Which finds a trace of each program; one file in its place would be written over, or the next run refused."""
    (tmp_path / "traces").mkdir()
    part = tmp_path / "traces" / "trace-1-000000-node-1.ftr"
    part.write_text("of a program before")
    env = {"FALLOW_TRACE": str(part.parent), "FALLOW_RUN_ID": "outer"}
    out = run("-q", "--", "sh", "-c", 'echo "$FALLOW_TRACE"', env=env)
    assert (out.returncode, out.stdout, out.stderr) == (0, f"{part.parent}\n", "")
    assert [p.name for p in part.parent.iterdir()] == [part.name]
    assert run("--trace", part.parent, "--", "true", env=env).returncode == 2


@pytest.mark.parametrize("more", [[], ["--compare", "1"]])
def test_without_a_process_to_be_had_the_command_takes_our_place(fake_library, tmp_path, more):
    """As where a limit on processes leaves room for one. A comparison has more to do, and says why it cannot."""
    none_left = "def none(*a, **k): raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))"
    code = f"import errno, os, sys\n{none_left}\nos.posix_spawnp = none\nfrom fallow import cli\nsys.exit(cli.main(sys.argv[1:]))"
    shell = "echo $FALLOW_RUN_ID; grep SigBlk /proc/self/status; exit 7"
    ours = subprocess.run(
        [sys.executable, "-c", code, "run", "-q", *more, "--", "sh", "-c", shell],
        cwd=tmp_path, env=os.environ | {"FALLOW_LIBRARY_DIR": str(fake_library)}, capture_output=True, text=True,
        timeout=240, check=False,
    )  # fmt: skip
    assert len(ours.stderr.splitlines()) == 1, ours.stderr
    if more:
        assert ours.returncode == 126
        assert "Resource temporarily unavailable" in ours.stderr
    else:
        assert ours.returncode == 7
        run_id, blocked = ours.stdout.splitlines()
        assert run_id
        assert int(blocked.split()[1], 16) == 0
        assert "it takes Fallow's place" in ours.stderr


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGALRM", "SIGXCPU", "SIGPIPE", "SIGXFSZ", "SIGABRT", "SIGRTMIN"])
def test_signals_are_passed_on(fake_library, tmp_path, name):
    env = os.environ | {"FALLOW_LIBRARY_DIR": str(fake_library)}
    # Short sleeps: a signal that comes just before a long one does not end it.
    code = (
        "import signal,sys,time\nsignal.signal(getattr(signal, sys.argv[1]), lambda *a: sys.exit(5))\nprint('up', flush=True)\n"
        "for _ in range(6000): time.sleep(0.1)"
    )
    ours = subprocess.Popen(
        [sys.executable, "-m", "fallow", "run", "-q", "--", sys.executable, "-c", code, name],
        cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert ours.stdout is not None
    assert ours.stdout.readline() == "up\n"
    ours.send_signal(getattr(signal, name))
    try:
        assert ours.wait(240) == 5
    finally:
        ours.terminate()  # both, unless they have ended
        ours.stdout.close()


def test_stopping_and_continuing_are_passed_on(fake_library, tmp_path):
    """To the command, as nobody else tells it: launchers stop and continue their ranks."""
    env = os.environ | {"FALLOW_LIBRARY_DIR": str(fake_library)}
    code = (
        "import os,signal,sys,time\nsignal.signal(signal.SIGTSTP, lambda *a: os.write(1, b'stop\\n'))\n"
        "signal.signal(signal.SIGCONT, lambda *a: sys.exit(5))\nprint('up', flush=True)\n"
        "for _ in range(6000): time.sleep(0.1)"
    )
    ours = subprocess.Popen(
        [sys.executable, "-m", "fallow", "run", "-q", "--", sys.executable, "-c", code],
        cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert ours.stdout is not None
    try:
        assert ours.stdout.readline() == "up\n"
        ours.send_signal(signal.SIGCONT)  # it was not stopped
        ours.send_signal(signal.SIGTSTP)
        told, _, _ = select.select([ours.stdout], [], [], 60)
        assert told and ours.stdout.readline() == "stop\n"
        ours.send_signal(signal.SIGCONT)
        assert ours.wait(60) == 5
    finally:
        ours.send_signal(signal.SIGCONT)
        ours.terminate()
        ours.stdout.close()


def test_an_alarm_set_before_ends_the_command(fake_library, tmp_path):
    """As `alarm` and its kin do: the timer goes off in our process, which the kernel tells from what others send."""
    code = "import os,signal,sys; signal.alarm(2); os.execv(sys.argv[1], sys.argv[1:])"
    ours = subprocess.run(
        [sys.executable, "-c", code, sys.executable, "-m", "fallow", "run", "-q", "--", "sleep", "200"],
        cwd=tmp_path, env=os.environ | {"FALLOW_LIBRARY_DIR": str(fake_library)}, timeout=150, check=False,
    )  # fmt: skip
    assert ours.returncode == -signal.SIGALRM


def test_the_command_has_the_signals_it_would_have(run):
    code = (
        "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []),"
        "[signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP)])"
    )
    bare = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert run("-q", "--", sys.executable, "-c", code).stdout == bare


def test_signals_that_are_blocked_stay_blocked(fake_library, tmp_path):
    """Also those of real time that have no name."""
    code = (
        "import os,signal,sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGTERM, signal.SIGRTMIN + 6]);"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    seen = []
    for ours in ([], [sys.executable, "-m", "fallow", "run", "-q", "--"]):
        command = [sys.executable, "-c", code, *ours, shutil.which("grep"), "SigBlk", "/proc/self/status"]
        env = os.environ | {"FALLOW_LIBRARY_DIR": str(fake_library)}
        seen.append(subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout)
    assert seen[0] == seen[1] != ""


def one_line(text: str) -> bool:
    return len(text.splitlines()) == 1 and text.startswith("fallow: ")


def test_a_directory_that_no_report_could_name_is_refused(fake_library, tmp_path):
    ours = subprocess.run(
        [sys.executable, "-m", "fallow", "run", "--out", b"bad\xff", "--", "echo", "ran"],
        cwd=tmp_path, env=os.environ | {"FALLOW_LIBRARY_DIR": str(fake_library)}, capture_output=True, timeout=240, check=False,
    )  # fmt: skip
    assert (ours.returncode, ours.stdout) == (2, b"")
    assert b"bad\\udcff: the name is not UTF-8; take another" in ours.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["lib"]


def test_without_a_directory_the_command_runs(run):
    out = run("-q", "--out", "/proc/nowhere", "--", "sh", "-c", "echo out; env | grep -c FALLOW_DIR; exit 4")
    assert (out.returncode, out.stdout) == (4, "out\n0\n")
    assert one_line(out.stderr)


@pytest.mark.parametrize(("options", "told"), [("", "has been removed"), ("--trace t", "no trace"), ("--out {}", "")])
def test_in_a_directory_that_was_removed_the_command_runs(fake_library, tmp_path, options, told):
    (tmp_path / "gone").mkdir()
    ours = f"{sys.executable} -m fallow run -q {options.format(tmp_path / 'out')} -- sh -c 'echo out; exit 4'"
    out = subprocess.run(
        ["sh", "-c", f"rmdir ../gone; {ours}"], cwd=tmp_path / "gone", capture_output=True, text=True, timeout=240,
        env=os.environ | {"FALLOW_LIBRARY_DIR": str(fake_library)}, check=False,
    )  # fmt: skip
    assert (out.returncode, out.stdout) == (4, "out\n"), out.stderr
    lines = [line for line in out.stderr.splitlines() if line.startswith("fallow: ")]
    assert told in "".join(lines) and bool(lines) == bool(told), out.stderr
    assert "Traceback" not in out.stderr


def test_with_a_full_disk_the_command_runs(run, tmp_path):
    directory = tmp_path / "out"
    directory.mkdir()
    for quiet in (["-q"], []):
        out = run(*quiet, "--out", directory, "--", "sh", "-c", f"rm -r {directory}; echo out; exit 4")
        assert (out.returncode, out.stdout) == (4, "out\n")
        assert one_line(out.stderr), out.stderr


def test_a_directory_in_use_is_refused(run, tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x/file").touch()
    out = run("--out", tmp_path / "x", "--", "true")
    assert out.returncode == 2
    assert "not empty" in out.stderr


def test_two_runs_do_not_share_a_directory(run, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    lock = os.open(shared, os.O_RDONLY)  # as another run that has just begun holds it
    fcntl.flock(lock, fcntl.LOCK_EX)
    out = run("--out", shared, "--", "touch", tmp_path / "ran")
    assert (out.returncode, out.stdout) == (2, "")
    assert "in use by another run" in out.stderr
    assert not (tmp_path / "ran").exists()
    os.close(lock)
    assert run("-q", "--out", shared, "--", "echo", "second").stdout == "second\n"


def test_shared_memory_of_the_run_is_removed(run):
    out = run("-q", "--", "sh", "-c", "echo $FALLOW_RUN_ID; touch /dev/shm/fallow-$FALLOW_RUN_ID-x")
    assert not Path(f"/dev/shm/fallow-{out.stdout.strip()}-x").exists()


def test_directories_of_one_second_do_not_clash(run, tmp_path):
    for _ in range(3):
        run("-q", "--", "true")
    assert len(list(tmp_path.glob("fallow-run-*"))) == 3


def test_the_summary_goes_to_stderr(run, tmp_path, run_dir):
    out = run("--", "sh", "-c", f"cp {run_dir}/rank-* $FALLOW_DIR; echo out")
    assert out.stdout == "out\n"
    assert "waits asleep" in out.stderr
    assert "fallow report fallow-run-" in out.stderr
    assert len(out.stderr.splitlines()) <= 10


def test_it_starts_without_loading_what_it_does_not_need(fallow):
    out = fallow("run", "-q", "--", "true", env={"PYTHONPROFILEIMPORTTIME": "1"})
    loaded = {line.rsplit("|", 1)[1].strip() for line in out.stderr.splitlines() if line.startswith("import time:")}
    assert "fallow.runner" in loaded
    assert not loaded & {"otf2", "pyarrow", "numpy", "unittest", "multiprocessing", "xml", "http"}
    others = ("analyse", "compare", "energy", "model", "sim", "predict_study", "sweep", "reproduce")  # of other commands, or for the summary
    assert not loaded & {f"fallow.{name}" for name in others}


@pytest.mark.parametrize(
    "args",
    [[], ["run"], ["run", "--"], ["run", "--mode", "what", "--", "true"], ["run", "--compare", "0", "--", "true"],
     ["run", "--json", "--", "true"], ["run", "--slowdown", "-1%", "--", "true"], ["nonsense"], ["report", "--nonsense"]],
)  # fmt: skip
def test_bad_input_is_exit_2_without_a_traceback(fallow, args):
    out = fallow(*args)
    assert out.returncode == 2
    assert out.stderr
    assert "Traceback" not in out.stderr


def test_a_platform_that_is_not_known_is_told_with_those_that_are(fallow):
    told = fallow("run", "--platform", "atlantis", "--", "true").stderr
    assert told.count("minotauro") == 1 and told.count("/platforms") == 1


def test_a_slowdown_out_of_range_is_told_with_the_range(fallow):
    assert "'5' is not a fraction from 0% to 100%" in fallow("run", "--slowdown", "5", "--", "true").stderr


def test_a_number_of_runs_that_is_none_is_told(fallow):
    out = fallow("run", "--compare", "three", "--", "true")
    assert out.returncode == 2
    assert "'three' is not a whole number from 1 to 9999" in out.stderr


def test_a_platforms_name_stays_one_where_a_directory_has_it_too(run, tmp_path):
    (tmp_path / "minotauro").mkdir()
    assert run("-q", "--platform", "minotauro", "--", "true").returncode == 0
    assert record(tmp_path)["platform"] == "minotauro"


def test_ctrl_c_reaches_the_command_once(fake_library, tmp_path):
    """The terminal interrupts the whole foreground group; passing it on as well would be a second one."""
    code = (
        "import signal, time\n"
        "seen = []\n"
        "signal.signal(signal.SIGINT, lambda *a: seen.append(1))\n"
        "print('up', flush=True)\n"
        "for _ in range(1200):\n"
        "    time.sleep(0.05)\n"
        "    if seen: break\n"
        "time.sleep(1)\n"  # for a second one
        "print('seen', len(seen), flush=True)\n"
        "raise SystemExit(6)\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ["FALLOW_LIBRARY_DIR"] = str(fake_library)
        ours = [sys.executable, "-m", "fallow", "run", "-q", "--", sys.executable, "-c", code]
        os.execv(sys.executable, ours)
    text = b""
    while b"up" not in text:
        text += os.read(terminal, 100)
    os.write(terminal, b"\x03")
    with contextlib.suppress(OSError):  # how a terminal says that nobody is left
        while chunk := os.read(terminal, 100):
            text += chunk
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert b"seen 1" in text
    assert os.waitstatus_to_exitcode(status) == 6


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_stay_closed(fake_library, tmp_path, closed):
    env = os.environ | {"FALLOW_LIBRARY_DIR": str(fake_library)}
    report = "for i in 0 1 2; do readlink /proc/$$/fd/$i >/dev/null && echo $i; done >>seen; exit 4"
    seen = []
    for command in (f"sh -c '{report}'", f"{sys.executable} -m fallow run -- sh -c '{report}'"):
        (tmp_path / "seen").unlink(missing_ok=True)
        out = subprocess.run(
            ["sh", "-c", f"{command} {closed}"], cwd=tmp_path, env=env, capture_output=True, check=False
        )
        assert (out.returncode, out.stdout) == (4, b"")
        seen.append((tmp_path / "seen").read_text())
    assert seen[0] == seen[1]


def test_a_signal_that_is_ignored_interrupts_no_series(run, tmp_path):
    """As the end of the terminal is under nohup."""
    (tmp_path / "hup.sh").write_text("kill -HUP $PPID; sleep 0.1\n")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        done = run("--compare", "2", "--json", "--", "sh", "hup.sh")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert done.returncode == 0 and len(json.loads(done.stdout)["trials"]) == 4, done.stderr

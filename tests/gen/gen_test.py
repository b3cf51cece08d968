"""The wrapper generator: what it reads, that it gives the same bytes out twice, and that the table covers MPI."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GEN = ROOT / "gen"
sys.path.insert(0, str(GEN))

from calls import load_table  # noqa: E402
from emit_preload import emit_preload, fortran_names  # noqa: E402
from emit_wrappers import emit_coverage, emit_wrappers  # noqa: E402
from prototypes import parse_prototypes  # noqa: E402

HEADER = """
int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
  __attribute__((pointer_with_type_tag(MPI,1,3)));
int MPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Alltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
  void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm);
int MPI_Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Op_create(MPI_User_function *fn, int commute, MPI_Op *op);
int MPI_Comm_create_keyval(int (*copy)(MPI_Comm), int *keyval);
int MPI_Pcontrol(const int level, ...);
double MPI_Wtime(void);
"""


def test_prototypes_are_read_with_names_and_arrays() -> None:
    found = parse_prototypes(HEADER)
    assert found["MPI_Alltoallw"].forward().split(", ")[1] == "sendcounts"
    assert found["MPI_Bcast"].declare().endswith("MPI_Comm arg4")
    assert found["MPI_Wtime"].parameters == ()
    assert "MPI_Pcontrol" not in found, "variadic functions cannot be forwarded"
    assert "MPI_Comm_create_keyval" not in found, "parameters that are functions are not taken apart"


def test_parameters_have_the_names_of_the_standard() -> None:
    """Whatever the header calls them: what is generated goes by the names."""
    found = parse_prototypes("""
      int MPI_Pready(int partitions, MPI_Request request);
      int MPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler e, MPI_Comm *newcomm);
      int MPI_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
      int MPI_Mrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status status[]);
      int MPI_Mrecv_c(void *buf, MPI_Count count, MPI_Datatype type, MPI_Message *message, MPI_Status *status);
      int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
    """)
    assert found["MPI_Pready"].declare() == "int partition, MPI_Request request"
    assert found["MPI_Comm_create_from_group"].parameters[1].declaration == "const char *stringtag"
    assert found["MPI_Precv_init"].parameters[4].name == "source" and found["MPI_Precv_init"].has("partitions")
    assert found["MPI_Mrecv"].declare() == "void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Status status[]"
    assert found["MPI_Mrecv_c"].has("datatype")
    assert found["MPI_Send"].has("type", "dest"), "only of the functions that are listed"


def test_every_call_of_the_table_is_one_that_mpi_has() -> None:
    table = load_table(GEN / "calls.toml")
    listed = [ROOT / "build" / "python" / "src" / "pmpi" / f / f"coverage-{f}.json" for f in ("openmpi", "mpich", "mpiabi")]
    present = {row["name"] for path in listed if path.exists() for row in json.loads(path.read_text())}
    assert present, "make build comes first"
    present.add("MPIX_Comm_iagree")  # Open MPI 5 has it
    unknown = [base for base in table if not present & {f"MPI_{base}", f"MPIX_{base}"}]
    assert not unknown


@pytest.mark.parametrize("family", ["openmpi", "mpich", "mpiabi"])
def test_nothing_that_communicates_is_left_out(family: str) -> None:
    path = ROOT / "build" / "python" / "src" / "pmpi" / family / f"coverage-{family}.json"
    assert path.exists(), "make build comes first"
    rows = json.loads(path.read_text())
    local = [r["name"] for r in rows if r["treatment"] == "not wrapped"]
    words = ("send", "recv", "bcast", "reduce", "gather", "scatter", "alltoall", "barrier", "scan", "wait", "probe", "_put", "accumulate", "fence", "flush", "spawn", "_lock")
    suspicious = [n for n in local if any(w in n.lower() for w in words) and not n.startswith(("MPI_Reduce_local", "MPI_Attr_put")) and not n.startswith("MPIX_")]
    assert suspicious == []
    assert all(r["why"] for r in rows if not r["blocks"]), "what does not sleep says why"


def test_extensions_that_are_not_known_are_not_called_local() -> None:
    table = load_table(GEN / "calls.toml")
    found = parse_prototypes("""int MPIX_Comm_failure_ack(MPI_Comm comm);
      int MPIX_Comm_agree(MPI_Comm comm, int *flag);
      int MPIX_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);""")
    told = {row["name"]: (row["treatment"], row["why"]) for row in emit_coverage(table, found)}
    assert told == {
        "MPIX_Barrier_init": ("recorded, passes through", "prepares a persistent request"),
        "MPIX_Comm_agree": ("recorded, waits sleep", ""),
        "MPIX_Comm_failure_ack": ("not wrapped", "an extension of this MPI"),
    }


def test_in_place_and_missing_roots_are_not_looked_into() -> None:
    header = """int MPI_Gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
      MPI_Datatype recvtype, int root, MPI_Comm comm);"""
    table = load_table(GEN / "calls.toml")
    text = emit_wrappers(table, parse_prototypes(header), "mpi.h")["wrappers.cpp"]
    assert "is_rank(root) ?" in text
    assert "sendbuf == MPI_IN_PLACE ? scope.bytes(recvcount, recvtype) : scope.bytes(sendcount, sendtype)" in text


def test_a_collective_call_tells_how_much_a_part_is_that_the_rank_has() -> None:
    header = """int MPI_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm);
      int MPI_Gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
        int root, MPI_Comm comm);
      int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
        MPI_Comm comm);
      int MPI_Barrier(MPI_Comm comm);
      int MPI_Ibcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request);"""
    text = emit_wrappers(load_table(GEN / "calls.toml"), parse_prototypes(header), "mpi.h")["wrappers.cpp"]
    told = dict(re.findall(r"int wrap_MPI_(\w+)\(.*?wake_partners\((.*?)\);", text, re.DOTALL))
    assert told == {
        "Reduce": "comm, count, datatype",
        "Gather": "comm, sendcount, sendtype",
        "Allgather": "comm, recvcount, recvtype",
        "Barrier": "comm",
        "Ibcast": "comm",  # goes on in other calls
    }


def test_calls_that_can_be_counted_only() -> None:
    """By one count on each side: arrays may have others the next time. What is given tells whether a call is as the one before."""
    header = """int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount,
        MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status);
      int MPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status);
      int MPI_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm);
      int MPI_Gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
        int root, MPI_Comm comm);
      int MPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
        const int displs[], MPI_Datatype recvtype, MPI_Comm comm);
      int MPI_Neighbor_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
        MPI_Datatype recvtype, MPI_Comm comm);
      int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status);
      int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status);
      int MPI_Barrier(MPI_Comm comm);
      int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request);"""
    text = emit_wrappers(load_table(GEN / "calls.toml"), parse_prototypes(header), "mpi.h")["wrappers.cpp"]
    given = {f"{kind} {name}": rest for kind, name, rest in re.findall(r"repeated<fallow::pmpi::CountedKind::(\w+)>\(here, kOp_MPI_(\w+)(.*?)\);", text)}
    assert given == {
        "message Sendrecv": ", sendcount, sendtype, dest, recvcount, recvtype, source, comm",
        "message Recv": ", count, datatype, source, comm",
        "message Probe": ", source, comm",
        "collective Reduce": ", count, datatype, root, comm",
        "collective Gather": ", sendbuf, sendcount, sendtype, recvcount, recvtype, root, comm",
        "collective Barrier": ", comm",
    }


def test_the_coverage_list_tells_which_tests_may_rest() -> None:
    header = """int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
      int MPI_Win_test(MPI_Win win, int *flag);
      int MPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);"""
    table, found = load_table(GEN / "calls.toml"), parse_prototypes(header)
    text = emit_wrappers(table, found, "mpi.h")["wrappers.cpp"]
    resting = [r["name"] for r in emit_coverage(table, found) if r["treatment"] == "recorded, rests in loops"]
    assert resting == ["MPI_Test", "MPI_Win_test"]
    assert text.count("scope.rests(next)") == 2 * len(resting), "by both names"


def test_what_only_reads_sends_nothing() -> None:
    header = """int MPI_Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
      MPI_Aint target_disp, MPI_Op op, MPI_Win win);
    int MPI_Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype,
      int target_rank, MPI_Aint target_disp, MPI_Win win);"""
    text = emit_wrappers(load_table(GEN / "calls.toml"), parse_prototypes(header), "mpi.h")["wrappers.cpp"]
    assert text.count("t.bytes(t.size(1, datatype));") == 4, "by both names"
    assert text.count("if (op != MPI_NO_OP) t.bytes(t.size(1, datatype));") == 2


def test_functions_that_take_long_keep_the_jump() -> None:
    """Who links others once MPI has started is led past it: each by both names, in the order of the names."""
    header = """int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
      int MPI_Comm_free(MPI_Comm *comm);
      int MPI_File_sync(MPI_File fh);"""
    text = emit_preload(load_table(GEN / "calls.toml"), set(parse_prototypes(header)))["symbols.c"]
    assert re.findall(r"(\d, \d), // (\w+)", text) == [("0, 0", "MPI_Comm_free"), ("0, 0", "MPI_File_sync"), ("1, 1", "MPI_Send")]


def test_output_is_the_same_twice() -> None:
    table, found = load_table(GEN / "calls.toml"), parse_prototypes(HEADER)
    assert emit_wrappers(table, found, "mpi.h") == emit_wrappers(load_table(GEN / "calls.toml"), parse_prototypes(HEADER), "mpi.h")
    assert emit_preload(table, set(found)) == emit_preload(table, set(found))
    assert emit_coverage(table, found) == emit_coverage(table, found)


def test_every_symbol_has_one_slot() -> None:
    table = load_table(GEN / "calls.toml")
    out = emit_preload(table, {"MPI_Send", "MPI_Recv"})
    names = [line.strip().strip('",') for line in out["symbols.c"].splitlines() if line.startswith('    "')]
    assert names[:4] == ["MPI_Recv", "PMPI_Recv", "MPI_Send", "PMPI_Send"]
    assert len(names) == len(set(names))
    assert set(fortran_names("MPI_Send")) <= set(names)
    assert out["symbols.inc"].count(".quad") == 2 * len(names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[group]]\nkind = "dance"\nwhy = "x"\nnames = ["Send"]\n', "dance"),
        ('[[group]]\nkind = "send"\nnames = ["Send"]\n', "needs a 'why'"),
        ('[[group]]\nkind = "send"\nblocks = true\nsize = "counts"\nnames = ["Send"]\n', "Send: size 'counts' is none of"),
        ('[[group]]\nkind = "send"\nblocks = true\nwakes = "peers"\nnames = ["Send"]\n', "Send: wakes 'peers' is none of"),
        ('[[group]]\nkind = "send"\nblocks = true\nfrees = "group"\nnames = ["Send"]\n', "Send: frees 'group' is none of"),
        ('[[group]]\nkind = "send"\nblocks = true\nnames = ["Send", "Send"]\n', "stands there twice"),
    ],
)
def test_mistakes_in_the_table_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "calls.toml"
    path.write_text(text + "\n[[derive]]\nof = \"none\"\nkind = \"start\"\nblocks = false\nwakes = \"none\"\nwhy = \"x\"\n")
    with pytest.raises(SystemExit, match=message):
        load_table(path)


def test_a_header_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mpi.h").write_text("int hello(void);\n")
    command = [sys.executable, str(GEN / "generate.py"), "wrappers", "--family", "mpich", "--include", str(tmp_path), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "is this an MPI header" in done.stderr


def test_a_header_that_cannot_be_compiled_is_told_with_what_the_compiler_says(tmp_path: Path) -> None:
    (tmp_path / "mpi.h").write_text("#error no MPI for this machine\n")
    command = [sys.executable, str(GEN / "generate.py"), "wrappers", "--family", "mpich", "--include", str(tmp_path), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "cannot read mpi.h" in done.stderr and "no MPI for this machine" in done.stderr


def test_what_did_not_change_is_not_written_anew(tmp_path: Path) -> None:
    """Or all wrappers would be compiled again."""
    (tmp_path / "mpi.h").write_text(HEADER)
    command = [sys.executable, str(GEN / "generate.py"), "wrappers", "--family", "mpich", "--include", str(tmp_path), "--out", str(tmp_path / "out")]
    subprocess.run(command, check=True)
    made = sorted((tmp_path / "out").iterdir())
    for file in made:
        os.utime(file, ns=(0, 0))
    subprocess.run(command, check=True)
    assert [file.name for file in made] == ["coverage-mpich.json", "wrappers.cpp"]
    assert [file.stat().st_mtime_ns for file in made] == [0, 0]
    (tmp_path / "mpi.h").write_text(HEADER.replace("MPI_Recv", "MPI_Ssend"))
    subprocess.run(command, check=True)
    assert all(file.stat().st_mtime_ns for file in made)


def test_fortran_names_are_made_of_the_plain_functions() -> None:
    names = emit_preload(load_table(GEN / "calls.toml"), {"MPI_Send", "MPI_Send_c"})["symbols.c"]
    assert '"MPI_Send_c"' in names and '"PMPI_Send_c"' in names
    assert '"mpi_send__"' in names and "mpi_send_c" not in names

"""Names of call sites."""

from __future__ import annotations

import subprocess

from fallow import symbols


def test_without_the_module_there_is_an_offset():
    found = symbols.resolve([("/no/such/module", 0x1234), ("", 0x99)])
    assert found["/no/such/module", 0x1234].name == "module+0x1234"
    assert found["", 0x99].name == "(unknown module)+0x99"


def test_functions_and_lines(tmp_path):
    source = tmp_path / "p.c"
    source.write_text("int callee(void);\nint caller(void) {\n  return callee() + 1;\n}\nint callee(void) { return 1; }\n"
                      "int main(void) { return caller(); }\n")  # fmt: skip
    program = tmp_path / "p"
    subprocess.run(["cc", "-g", "-O0", "-o", program, source], check=True)
    listing = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    start = next(int(x.split()[0], 16) for x in listing.splitlines() if x.endswith(" caller"))
    found = symbols.resolve([(str(program), start + 9), (str(program), 0xFFFFFFF)])
    assert found[str(program), start + 9].name == "caller"
    assert found[str(program), start + 9].source.endswith(("p.c:2", "p.c:3"))
    assert found[str(program), 0xFFFFFFF].name == "p+0xfffffff"

"""Tuner plugins: hocket's follows its table as NCCL would see it, and any plugin can be asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from shutil import which

import jsonschema
import pytest
from tests.built import built_library

import hocket as hk
from hocket.cli import run
from hocket.cli.documents import json_schema
from hocket.nccl import plugin, plugin_process

ROOT = Path(__file__).parents[2]
TABLE = f"""# by hand
allreduce,0,65535,tree,ll,3,-1,-1
allreduce,65536,1048575,nvls,simple,16,-1,-1
allreduce,1048576,{(1 << 64) - 1},ring,simple,-1,1,8
"""


@pytest.fixture(scope="module")
def library() -> Path:
    """The plugin, built if it is not yet."""
    found = built_library("hocket-nccl-tuner")
    if found is None:
        pytest.skip("the library is of Linux and built by cargo")
    return found


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "tuner.csv"
    file.write_text(TABLE)
    monkeypatch.setenv("HOCKET_NCCL_TUNER", str(file))
    return file


def costs(**given: float) -> list[float]:
    """What NCCL hands in: -1 for what is not to be used."""
    made = [plugin_process.IGNORED] * 21
    for name, cost in given.items():
        algorithm, protocol = name.split("_")
        place = plugin_process.ALGORITHMS.index(algorithm.replace("0", "-"))
        made[place * 3 + ["ll", "ll128", "simple"].index(protocol)] = cost
    return made


def test_it_follows_its_table(library: Path, table: Path) -> None:
    plugin = plugin_process.Plugin(str(library), 8, 1)
    assert (plugin.name, plugin.version) == ("hocket", 7)
    given = costs(ring_simple=9.0, tree_ll=20.0)
    result, channels, after = plugin.ask(4, 1000, given)
    assert (result, channels) == (0, 3)
    assert after == costs(ring_simple=9.0, tree_ll=0.0)
    # What is to be ignored is not touched, and then channels are not either.
    assert plugin.ask(4, 100_000, given) == (0, 0, given)
    result, channels, after = plugin.ask(4, 1 << 40, given)
    assert (result, channels, after) == (0, 0, costs(ring_simple=0.0, tree_ll=20.0))
    # Of another collective, or one that no table has, nothing is changed.
    assert plugin.ask(2, 1000, given) == (0, 0, given)
    assert plugin.ask(14, 1000, given) == (0, 0, given)
    plugin.close()
    other = plugin_process.Plugin(str(library), 16, 2)
    assert other.ask(4, 1 << 40, given) == (0, 0, given)
    other.close()


@pytest.mark.parametrize("version", [4, 5, 6, 7])
def test_every_version_of_the_api(
    library: Path, table: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr(plugin_process, "VERSIONS", (version,))
    plugin = plugin_process.Plugin(str(library), 8, 1)
    assert plugin.version == version
    assert plugin.ask(4, 0, costs(tree_ll=5.0))[:2] == (0, 3)
    plugin.close()


@pytest.mark.parametrize(
    ("content", "why"),
    [("allreduce,0,1,circle,ll,1,1,1\n", "circle"), (None, "No such file")],
)
def test_without_a_table_nothing_is_changed(
    library: Path, table: Path, content: str | None, why: str
) -> None:
    table.unlink()
    if content is not None:
        table.write_text(content)
    plugin = plugin_process.Plugin(str(library), 8, 1)
    given = costs(ring_simple=9.0, tree_ll=20.0)
    assert plugin.ask(4, 1000, given) == (0, 0, given)
    assert plugin.log == ["%s"]  # a format, as loggers get it
    plugin.close()


def test_the_command(library: Path, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["nccl", "tuner", "show", str(library), "--topology", "dgx_a100_1box"]
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    assert "hocket, API 7, asked for 8 ranks" in printed
    # 256 B to 32 KiB are trees, 8 of them; from 1 MiB on rings. NVLS is not there on A100.
    drawn = next(line for line in printed.splitlines() if line.startswith("all-reduce "))
    letters = drawn.split()[1]
    assert letters[:8].lower() == "t" * 8
    assert letters[12:].lower() == "r" * (len(letters) - 12)
    assert run([*arguments, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["format"], value["name"]) == ("hocket.nccl-asked-tuner", "hocket")
    jsonschema.Draft202012Validator(json_schema()).validate(value)


def test_a_written_table_is_followed(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = hk.nccl.tuner_table("dgx_a100_2box")
    made.write(tmp_path / "tuner.csv")
    monkeypatch.setenv("HOCKET_NCCL_TUNER", str(tmp_path / "tuner.csv"))
    found = hk.nccl.ask_tuner(library, "dgx_a100_2box")
    assert found.picks
    assert all(pick.is_own for pick in found.picks)
    for pick in found.picks:
        row = made.pick(pick.kind, pick.least, nodes=2, ranks=16)
        assert row is not None
        expected = (row.algorithm, row.protocol, row.channels)
        assert (pick.algorithm, pick.protocol, pick.channels) == expected


PLUGIN = """
#include <stddef.h>
#include <stdlib.h>
static int init(size_t ranks, size_t nodes, void *log, void **context) {
  *context = NULL;
  return INIT;
}
static int get2(void *context, int kind, size_t bytes, int collnet, int nvls, int ops,
                int *algorithm, int *protocol, int *channels) {
  BODY
  *algorithm = 1; *protocol = 2; *channels = 5; return 0;
}
static int get3(void *context, int kind, size_t bytes, int ops, float **costs, int algorithms,
                int protocols, int *channels) {
  ((float *)costs)[1 * protocols + 0] = 0.0f; *channels = 7;
  LAST
  return 0;
}
static int end(void *context) { return 0; }
struct {
  const char *name;
  void *init, *get, *end;
} ncclTunerPlugin_vVERSION = {"made", init, getVERSION, end};
"""


def compiled(
    folder: Path,
    version: int,
    *,
    init: str = "0",
    body: str = "",
    last: str = "",
    more: str = "",
) -> Path:
    """A plugin of an old version, in C."""
    if which("cc") is None:
        pytest.skip("there is no C compiler")
    source, library = folder / "plugin.c", folder / "plugin.so"
    text = PLUGIN.replace("VERSION", str(version)).replace("INIT", init).replace("BODY", body)
    text = text.replace("LAST", last)
    source.write_text(text + more)
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.mark.parametrize(("version", "pick"), [(2, ("ring", "Simple", 5)), (3, ("ring", "LL", 7))])
def test_old_versions(tmp_path: Path, version: int, pick: tuple[str, str, int]) -> None:
    found = hk.nccl.ask_tuner(compiled(tmp_path, version), "dgx_a100_1box", sizes=[1024, 1 << 30])
    assert (found.name, found.api) == ("made", version)
    first = next(each for each in found.picks if each.kind == "all-reduce")
    assert (first.algorithm, first.protocol, first.channels) == pick


def test_plugins_that_do_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(library: Path) -> str:
        arguments = ["nccl", "tuner", "show", str(library), "--topology", "dgx_a100_1box"]
        assert run(arguments) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        return lines[0]

    assert "with signal 11" in said(compiled(tmp_path, 2, body="*(volatile int *)0 = 1;"))
    assert "with code 3" in said(compiled(tmp_path, 2, body="exit(3);"))
    assert "init gives 4" in said(compiled(tmp_path, 2, init="4"))
    text = tmp_path / "text.so"
    text.write_text("no library")
    assert "is no tuner plugin that can be asked" in said(text)
    assert "there is no such file" in said(tmp_path / "none.so")
    subprocess.run(
        ["cc", "-shared", "-o", tmp_path / "bare.so", "-x", "c", "/dev/null"], check=True
    )
    assert "no symbol ncclTunerPlugin_v7 to ncclTunerPlugin_v2" in said(tmp_path / "bare.so")


@pytest.mark.parametrize("cost", ["-1.0f", "0.0f / 0.0f", "-1.0f / 0.0f", "1.0f / 0.0f", "4e9f"])
def test_plugins_that_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cost: str
) -> None:
    """NCCL ends with an error then."""
    last = f"volatile float cost = {cost}; for (int i = 0; i < 21; i++) ((float *)costs)[i] = cost;"
    made = compiled(tmp_path, 3, last=last)
    assert run(["nccl", "tuner", "show", str(made), "--topology", "dgx_a100_1box"]) == 2
    says = "leaves NCCL nothing to use for all-reduce of 256 B; ask another plugin"
    assert capsys.readouterr().err.splitlines() == [f"hocket: {made}: {says}"]


@pytest.mark.parametrize(
    "written",
    [
        "[]",
        "5",
        '{"name": 5}',
        '{"name": "a", "api": 5, "answers": [], "log": []}',
        '{"name": "a", "api": 5, "answers": [[0, 0, []]], "log": []}',
        '{"error": 5}',
    ],
)
def test_plugins_that_answer_themselves(tmp_path: Path, written: str) -> None:
    line = json.dumps(written + "\n")
    made = compiled(tmp_path, 2, body=f"for (int fd = 3; fd < 9; fd++) dprintf(fd, {line});")
    with pytest.raises(hk.InfeasibleError, match="writes what is no answer into the answers"):
        hk.nccl.ask_tuner(made, "dgx_a100_1box", sizes=[1024])


CONSTRUCTOR = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void note(const char *name) {
  FILE *file = fopen(getenv(name), "w");
  fprintf(file, "%d", getpid());
  fclose(file);
}
__attribute__((constructor)) static void begin(void) { BODY }
"""
LOOPS = "for (volatile int i = 0;; i++);"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "body", "says"),
    [
        (LOOPS, "", "gives no answer in 1 s of a processor"),
        ("", LOOPS, "gives no answer in 1 s of a processor"),
        ("for (;;) pause();", "", "gives no answer in 5 s"),
        ("for (;;) memset(malloc(1 << 26), 1, 1 << 26);", "", "with signal 11"),
        (
            "char page[4096] = {0}; for (;;) for (int fd = 3; fd < 9; fd++) write(fd, page, 4096);",
            "",
            "writes what is no answer",
        ),
        ('for (int fd = 3; fd < 9; fd++) write(fd, "[\\n", 2);', "", "writes what is no answer"),
    ],
)
def test_plugins_that_never_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str, body: str, says: str
) -> None:
    # Only what never ends meets a limit of time: a busy machine takes its time for everything else.
    seconds = 1 if "1 s" in says else plugin._LIMITS["seconds"]
    monkeypatch.setattr(plugin, "_LIMITS", {"seconds": seconds, "memory": 1 << 28})
    monkeypatch.setattr(plugin, "_SECONDS", 5 if "5 s" in says else 600)
    made = compiled(tmp_path, 2, body=body, more=CONSTRUCTOR.replace("BODY", begin))
    with pytest.raises(hk.InfeasibleError, match=says):
        hk.nccl.ask_tuner(made, "dgx_a100_1box", sizes=[1024])


def ended(pid: int) -> bool:
    """Whether a process is gone, or dead and not yet waited for, within a minute."""
    for _ in range(6000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_nothing_that_a_plugin_started_outlives_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = tmp_path / "pid"
    monkeypatch.setenv("NOTED", str(noted))
    begin = 'if (fork() == 0) { note("NOTED"); for (;;) pause(); }'
    made = compiled(tmp_path, 2, more=CONSTRUCTOR.replace("BODY", begin))
    assert hk.nccl.ask_tuner(made, "dgx_a100_1box", sizes=[1024]).name == "made"
    told = noted.read_text() if noted.exists() else ""  # it may have ended before it wrote
    assert not told or ended(int(told))


@pytest.mark.skipif(sys.platform != "linux", reason="a parent's end kills on Linux")
def test_a_plugin_ends_with_whoever_asks(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    made = compiled(
        tmp_path, 2, more=CONSTRUCTOR.replace("BODY", 'note("NOTED"); for (;;) pause();')
    )
    asks = f"import hocket as hk; hk.nccl.ask_tuner({str(made)!r}, 'dgx_a100_1box')"
    asker = subprocess.Popen([sys.executable, "-c", asks], env={**os.environ, "NOTED": str(noted)})
    while not (noted.exists() and noted.read_text()):
        assert asker.poll() is None
        time.sleep(0.01)
    asker.kill()
    asker.wait()
    assert ended(int(noted.read_text()))

"""``hocket controller calibrate``: which way flows take through a network, learned by probes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from hocket._checks import is_decimal
from hocket.cli import options
from hocket.cli.command import Option
from hocket.cli.form import Form
from hocket.cli.table import NEVER, Table
from hocket.errors import InfeasibleError, SpecError

if TYPE_CHECKING:
    from hocket.steering import Calibration, Identified


@dataclass(frozen=True)
class Asked:
    """The question to probes, and their target."""

    panel: ClassVar[str] = "Probes"

    src: Annotated[
        str | None,
        Option("--src", help="An address of this host."),
    ] = None
    dst: Annotated[
        str | None, Option("--dst", help="The address that flows go to, with --src.")
    ] = None
    dport: Annotated[int, Option("--dport", help="The port that flows go to.")] = 4791
    hops: Annotated[int, Option("--hops", help="Number of hops to the switches that answer.")] = 2
    probes: Annotated[
        int, Option("--probes", help="Number of source ports tried with each protocol.")
    ] = 64
    seeds: Annotated[
        str,
        Option("--seeds", help="First and last seed tried to identify the hash."),
    ] = "1:65535"

    def learned(self) -> Calibration:
        """Send the probes from one end to the other."""
        from hocket.steering import calibrate as probe

        if self.src is None or self.dst is None:
            missing = "--src" if self.src is None else "--dst"
            raise SpecError(missing, "is missing beside the other end", "give both ends")
        return probe(self.src, self.dst, self.dport, hops=self.hops, probes=self.probes)

    def candidates(self) -> range:
        """Return the seeds that are tried."""
        first, mark, last = self.seeds.partition(":")
        if not mark or not is_decimal(first) or not is_decimal(last) or int(first) > int(last):
            raise SpecError("--seeds", f"{self.seeds!r} is no range", "write 1:65535")
        return range(int(first), int(last) + 1)


def calibrate(*, asked: Asked, form: Form) -> None:
    """Learn by probes which source ports lead to which switch, and identify the hash.

    For example: hocket controller calibrate --src 10.1.0.1 --dst 10.1.0.2
    """
    show_calibration(asked.learned, asked, form)


def show_calibration(learn: Callable[[], Calibration], asked: Asked, form: Form) -> None:
    """Print what probes tell, and the hashes that explain it."""
    candidates = asked.candidates()
    with options.watching() as watch:
        watch.note("probing")
        learned = learn()
        try:
            found = learned.identify(seeds=candidates, progress=watch)
        except InfeasibleError:
            found = []

    def document() -> dict[str, object]:
        return {**learned.to_dict(), "identified": [each.to_dict() for each in found]}

    if not form.prints("calibration", document, lambda: learned):
        _print_calibration(learned, found, len(candidates))


def _print_calibration(learned: Calibration, found: list[Identified], tried: int) -> None:
    protocols = sorted({each.protocol for each in learned.headers})
    answered = len(learned.headers) - learned.unanswered
    table = Table(
        title=f"{answered} of {len(learned.headers)} probes answered after {learned.hops} hops"
    )
    table.add_column("switch")
    for protocol in protocols:
        table.add_column(f"{protocol} ports", justify="right", leaves=NEVER)
        table.add_column(f"first {protocol} port", justify="right", leaves=1)
    for switch in learned.switches:
        cells = []
        for protocol in protocols:
            ports = learned.ports.get((protocol, switch), ())
            cells += [str(len(ports)), str(ports[0]) if ports else "–"]
        table.add_row(switch, *cells)
    console = options.output()
    console.print(table)
    if not found:
        console.note(
            f"no hash of {tried:,} seeds explains this; ports that were probed can be used"
        )
    for each in found:
        order = ", ".join(switch or "–" for switch in each.switches)
        hash = each.hash
        console.note(
            f"hash: {hash.algorithm}, fields {hash.fields:#x}, seed {hash.seed}; next hops {order}"
        )

"""``hocket reproduce mesh``: all-reduce on meshes of chiplets anew, beside the published numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.options import Watch
from hocket.units import format_size, format_time_ps
from hocket_studies import mesh, mesh_training
from hocket_studies import mesh_published as published
from hocket_studies.harness import Into, Report, table, wanted
from hocket_studies.mesh import Case
from hocket_studies.mesh_result import NAMES, MeshResult, reproduce_mesh
from hocket_studies.mesh_training import Epochs

_LEGEND = (
    "bidirectional: bidirectional-ring on even meshes, ring-bi-odd on odd ones. multitree-published: trees "
    "in the order of the published code. tto: chunks of 98,304 B; tto-chosen: hocket's. docs/mesh-study.md "
    "says what explains the differences, and what does not."
)


def study(
    *,
    table: Annotated[
        list[str] | None,
        Option("--table", help="Only table 1; may be combined with --figure."),
    ] = None,
    figure: Annotated[
        list[str] | None,
        Option("--figure", help="Only this figure: 8 to 14. Can be repeated."),
    ] = None,
    example: Annotated[bool, Option("--example", help="Only the epoch of section VIII-B.")] = False,
    choices: Annotated[
        bool, Option("--choices", help="Only the runs that explain the differences.")
    ] = False,
    full: Annotated[
        bool, Option("--full", help="Include sizes up to 1 GiB, and slow simulations.")
    ] = False,
    into: Into,
) -> None:
    """Compute table I and figures 8 to 14 of the RingBiOdd and TTO paper (HPCA 2024).

    For example: hocket reproduce mesh --figure 12 --output mesh
    """
    others = (example and "example", choices and "choices")
    names = wanted(NAMES, *others, table=table, figure=figure)

    def report(watch: Watch) -> Report:
        result = reproduce_mesh(names, full=full, on_case=watch)

        def show(console: Printer) -> None:
            for name in names:
                _PRINTERS[name](console, result)
            console.print(_LEGEND)

        return Report(as_json(result), show, _pictures(result))

    into.write("mesh", report)


def _pictures(result: MeshResult) -> dict[str, Callable[[Path], None]]:
    from hocket_studies import mesh_pictures as draw

    drawers: list[tuple[str, object, Callable[[MeshResult, Path], None]]] = [
        ("fig8.png", result.sizes, draw.draw_sizes),
        ("fig9.png", result.is_scaled, draw.draw_scaling),
        ("fig10.png", result.epochs, draw.draw_epochs),
        ("fig11.png", result.overlapped, draw.draw_overlapped),
        ("fig12.png", result.curves, draw.draw_curves),
        ("fig13.png", result.simba, draw.draw_simba),
        ("fig14.png", result.chunks, draw.draw_chunks),
    ]
    return {name: partial(drawer, result) for name, is_there, drawer in drawers if is_there}


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _range(values: Iterable[float] | None) -> str:
    found = list(values or ())
    return f"{min(found):.2f} - {max(found):.2f}" if found else "–"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _print_used_links(console: Printer, result: MeshResult) -> None:
    assert result.used_links is not None
    rows = []
    for method in result.used_links[8]:
        row = [method]
        for side, shares in result.used_links.items():
            name = method.removesuffix("-published")
            row += [_percent(shares[method]), _percent(published.USED_LINKS[side].get(name))]
        rows.append(row)
    columns = ["8 x 8", "published", "9 x 9", "published"]
    console.print(table("table I: share of links used", ["method"], columns, rows))


def _print_sizes(console: Printer, result: MeshResult) -> None:
    assert result.sizes is not None
    sizes, study = result.sizes.sizes, result.study
    for side in mesh.SIDES:
        rows = []
        for method in mesh.METHODS:
            cases = [Case(side, size, method) for size in sizes]
            each = [f"{study.bandwidth(c) / 1e9:.2f}" if c in study.times else "–" for c in cases]
            rows.append([method, *each])
        title = f"figure 8: all-reduce on {side} x {side}, size / time [GB/s]"
        console.print(table(title, ["method"], [format_size(size) for size in sizes], rows))
    rows = []
    for over in mesh.METHODS:
        name = over.removesuffix("-published")
        rows.append(
            [
                over,
                _ratio(result.sizes.mean_speedup("tto", over)),
                _ratio(published.TTO_SPEEDUP.get(name)),
                _ratio(result.sizes.mean_speedup("tto-chosen", over)),
                _ratio(result.sizes.mean_speedup("bidirectional", over, mesh.ODD)),
                _ratio(published.RING_BI_ODD_SPEEDUP.get(name)),
            ]
        )
    columns = ["tto", "published", "tto-chosen", "ring-bi-odd", "published"]
    title = "figure 8: mean over meshes and sizes of the speed-up over"
    console.print(table(title, ["method"], columns, rows))


def _print_scaling(console: Printer, result: MeshResult) -> None:
    study = result.study
    rows = []
    for side in mesh.SCALING_SIDES:
        base = study.times[
            Case(3 if side % 2 else 4, mesh.scaling_size(3 if side % 2 else 4), "ring")
        ]
        times = [study.times[Case(side, mesh.scaling_size(side), m)] for m in mesh.SCALING_METHODS]
        rows.append([f"{side} x {side}", *(_ratio(time / base) for time in times)])
    title = "figure 9: 375 KiB for each chiplet, time / that of ring on 4 x 4 (even) or 3 x 3 (odd)"
    console.print(table(title, ["mesh"], list(mesh.SCALING_METHODS), rows))
    rows = []
    for over in mesh.SCALING_METHODS:
        name = over.removesuffix("-published")
        rows.append(
            [
                over,
                _ratio(mesh.scaling_speedup(study, "tto", over)),
                _ratio(published.SCALING_SPEEDUP.get(name)),
                _ratio(mesh.scaling_speedup(study, "bidirectional", over, odd=True)),
                _ratio(published.SCALING_RING_BI_ODD.get(name)),
            ]
        )
    columns = ["tto", "published", "ring-bi-odd", "published"]
    title = "figure 9: mean over meshes of the speed-up over"
    console.print(table(title, ["method"], columns, rows))


def _print_epochs(
    console: Printer, title: str, found: list[Epochs], theirs: dict[str, tuple[float, float]]
) -> None:
    methods = [method for method in mesh_training.METHODS if method != "tto"]
    rows = []
    for each in found:
        row = [each.model, f"{each.side} x {each.side}", f"{each.array} x {each.array}"]
        row += [format_size(each.size), format_time_ps(each.epochs["tto"].compute)]
        for method in methods:
            is_there = method in each.epochs
            pair = (
                (each.all_reduce_speedup("tto", method), each.speedup("tto", method))
                if is_there
                else ()
            )
            row.append(" / ".join(map(_ratio, pair)) or "–")
        rows.append(row)
    row = ["published, epochs", "", "", "", ""]
    row += [_range(theirs.get(method.removesuffix("-published"))) for method in methods]
    rows.append(row)
    left = ["model", "mesh", "arrays", "gradients", "compute"]
    console.print(table(title, left, methods, rows))


def _print_figure_10(console: Printer, result: MeshResult) -> None:
    title = "figure 10: speed-up of tto over, all-reduce / epoch"
    _print_epochs(console, title, result.epochs or [], published.EPOCH_SPEEDUP)
    _print_saved(console, result.epochs or [])


def _print_saved(console: Printer, found: list[Epochs]) -> None:
    rows = []
    for (of, over), theirs in published.TIME_SAVED.items():
        method = "multitree-published" if over == "multitree" else over
        sides = (9,) if of == "bidirectional" else mesh_training.SIDES
        name = "ring-bi-odd" if of == "bidirectional" else of
        ours = mesh_training.time_saved(found, of, method, sides)
        rows.append([name, method, _percent(ours), _percent(theirs)])
    title = "figure 10: the most training time saved, over models and meshes"
    console.print(table(title, ["by", "of"], ["hocket", "published"], rows))


def _print_figure_13(console: Printer, result: MeshResult) -> None:
    title = "figure 13: Simba, 6 x 6, speed-up of tto over, all-reduce / epoch"
    _print_epochs(console, title, result.simba or [], published.SIMBA_TRAINING)
    methods = [method for method in mesh_training.METHODS if method != "tto"]
    rows = []
    for method in methods:
        each = [found.all_reduce_speedup("tto", method) for found in result.simba or []]
        theirs = published.SIMBA_SPEEDUP.get(method.removesuffix("-published"))
        rows.append([method, _ratio(sum(each) / len(each)), _ratio(theirs)])
    title = "figure 13: mean over models of the speed-up of tto's all-reduce over"
    console.print(table(title, ["method"], ["hocket", "published"], rows))


def _print_overlapped(console: Printer, result: MeshResult) -> None:
    methods = [method for method in mesh_training.METHODS if method != "tto"]
    rows = []
    for each in result.overlapped or []:
        exposed = each.iterations["tto"].exposed_ps / each.iterations["tto"].time_ps
        row = [each.model, _percent(exposed)]
        for method in methods:
            pair = (each.speedup("tto", method), each.speedup("tto-chosen", method))
            row.append(" / ".join(map(_ratio, pair)))
        rows.append(row)
    theirs = (published.OVERLAP_SPEEDUP.get(m.removesuffix("-published")) for m in methods)
    rows.append(["published", "", *map(_range, theirs)])
    title = "figure 11: an all-reduce for each group of layers, 8 x 8: speed-up of tto / tto-chosen over"
    console.print(table(title, ["model", "all-reduce not hidden"], methods, rows))


def _print_curves(console: Printer, result: MeshResult) -> None:
    rows = []
    for curve in result.curves or []:
        theirs = published.LINK_UTILIZATION.get(curve.method.removesuffix("-published"))
        text = _percent(theirs) if isinstance(theirs, float) else "–"
        if isinstance(theirs, tuple):
            text = " - ".join(f"{share:.0%}" for share in theirs)
        rows.append([curve.method, format_time_ps(curve.time_ps), _percent(curve.mean), text])
    title = "figure 12: 256 MiB on 9 x 9, mean share of links in use"
    console.print(table(title, ["method"], ["time", "hocket", "published"], rows))


def _print_chunks(console: Printer, result: MeshResult) -> None:
    chunks = result.chunks or {}
    rows = [[format_size(chunk), f"{rate / 1e9:.2f}"] for chunk, rate in chunks.items()]
    low, high = published.BEST_CHUNK_KIB
    title = f"figure 14: tto, 128 MiB on 8 x 8 [GB/s]; published best: {low} to {high} KiB"
    console.print(table(title, ["chunk"], ["size / time"], rows))


def _print_example(console: Printer, result: MeshResult) -> None:
    assert result.example is not None
    base, tto = result.example.base, result.example.tto
    theirs = published.EPOCH_EXAMPLE
    rows = [
        [
            "iterations",
            f"{base.iterations}, {tto.iterations}",
            f"{theirs['iterations']}, {theirs['iterations_of_tto']}",
        ],
        ["compute, cycles", f"{base.compute // 1000:,}", f"{theirs['compute']:,}"],
        [
            "all-reduce, bidirectional",
            f"{base.all_reduce // 1000:,}",
            f"{theirs['bidirectional']:,}",
        ],
        ["all-reduce, tto", f"{tto.all_reduce // 1000:,}", f"{theirs['tto']:,}"],
        ["gain, all-reduce of the epoch", _percent(result.example.all_reduce_gain), "44.0%"],
        ["gain, whole epoch", _percent(result.example.epoch_gain), "34.7% by its numbers"],
    ]
    title = "section VIII-B: ResNet-152 on 8 x 8"
    console.print(table(title, ["figure"], ["hocket", "published"], rows))


def _print_choices(console: Printer, result: MeshResult) -> None:
    rows = [
        [each.figure, each.what, *map(_ratio, (each.without, each.with_it, each.published))]
        for each in result.choices or []
    ]
    title = "which modelling choice moves which figure; 1, 4, ... 256 MiB where no size is given"
    columns = ["without", "with it", "published"]
    console.print(table(title, ["figure", "done otherwise"], columns, rows))


_PRINTERS: dict[str, Callable[[Printer, MeshResult], None]] = {
    "table 1": _print_used_links,
    "figure 8": _print_sizes,
    "figure 9": _print_scaling,
    "figure 10": _print_figure_10,
    "figure 11": _print_overlapped,
    "figure 12": _print_curves,
    "figure 13": _print_figure_13,
    "figure 14": _print_chunks,
    "example": _print_example,
    "choices": _print_choices,
}


def as_json(result: MeshResult) -> dict[str, Any]:
    """Return all that was computed as JSON values: times in picoseconds, sizes in bytes."""
    value: dict[str, Any] = {"source": published.SOURCE}
    if result.used_links is not None:
        value["table_1"] = {"used_links": result.used_links, "published": published.USED_LINKS}
    if result.sizes is not None:
        of_tto = {over: result.sizes.mean_speedup("tto", over) for over in mesh.METHODS}
        of_ring = {
            over: result.sizes.mean_speedup("bidirectional", over, mesh.ODD)
            for over in mesh.METHODS
        }
        value["figure_8"] = {
            "sizes_bytes": result.sizes.sizes,
            "mean_speedup_of_tto": of_tto,
            "published_of_tto": published.TTO_SPEEDUP,
            "mean_speedup_of_ring_bi_odd": of_ring,
            "published_of_ring_bi_odd": published.RING_BI_ODD_SPEEDUP,
        }
    if result.is_scaled:
        methods = mesh.SCALING_METHODS
        speedups = {over: mesh.scaling_speedup(result.study, "tto", over) for over in methods}
        value["figure_9"] = {
            "mean_speedup_of_tto": speedups,
            "published_of_tto": published.SCALING_SPEEDUP,
        }
    for name, found in (("figure_10", result.epochs), ("figure_13", result.simba)):
        if found is not None:
            value[name] = [_epochs_json(each) for each in found]
    if result.overlapped is not None:
        value["figure_11"] = [
            {
                "model": each.model,
                "iteration_ps": {m: i.time_ps for m, i in each.iterations.items()},
                "exposed_ps": {m: i.exposed_ps for m, i in each.iterations.items()},
                "iterations": each.counts,
            }
            for each in result.overlapped
        ]
    if result.curves is not None:
        value["figure_12"] = [
            {"method": c.method, "time_ps": c.time_ps, "mean": c.mean, "shares": c.shares}
            for c in result.curves
        ]
    if result.chunks is not None:
        value["figure_14"] = [
            {"chunk_bytes": chunk, "bytes_per_s": rate} for chunk, rate in result.chunks.items()
        ]
    if result.example is not None:
        value["example"] = {
            "all_reduce_gain": result.example.all_reduce_gain,
            "epoch_gain": result.example.epoch_gain,
            "published": published.EPOCH_EXAMPLE,
        }
    if result.choices is not None:
        value["choices"] = [vars(each) for each in result.choices]
    value["cases"] = [
        {**vars(case), "time_ps": time}
        for case, time in sorted(result.study.times.items(), key=str)
    ]
    return value


def _epochs_json(each: Epochs) -> dict[str, Any]:
    return {
        "model": each.model,
        "side": each.side,
        "array": each.array,
        "gradient_bytes": each.size,
        "epochs": {
            method: {
                "iterations": epoch.iterations,
                "compute_ps": epoch.compute,
                "all_reduce_ps": epoch.all_reduce,
                "time_ps": epoch.time,
            }
            for method, epoch in each.epochs.items()
        },
    }

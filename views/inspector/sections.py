"""What the inspector says, section by section, as HTML; a section is empty where there is nothing to say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.passes.candidate import Candidate
from engine.quantities import bytes_text, count_text, time_text
from engine.session.matching import shown_in, standing_for
from engine.session.notes import Kind, by_kind
from engine.session.session import Session
from engine.session.variant import Variant
from views.fusion.early import Early, early_of, tried_of
from views.inspector.facts import is_executed, links_of, price_of, shape_text, times_of, why_exposed
from views.ports import Host
from views.timeline.budget_marks import sentence
from views.timeline.paint_header import OVER, SCALED, SOURCES, origin_text

NOTES = "notes"
"""Target of the link that shows all notes, or few again."""
_LONG = re.compile(r"\S{20,}")
_PARTS = re.compile(r"[-_/,:=](?=\w)|(?<=\w)(?=\.\w)")
_UNBROKEN = re.compile(r"[^\s\u200b]{16}(?=[^\s\u200b])")
_MOST_LINKS = 12
_MOST_HELD = 4
"""Starts that the budget kept waiting of which an alike site tells."""


def _section(title: str, body: str) -> str:
    return f"<p style='margin-top:10px; margin-bottom:2px'><b>{escape(title)}</b></p>{body}" if body else ""


def _table(rows: Iterable[Sequence[str]], muted: str) -> str:
    """Rows of (caption, value); values are HTML."""
    cells = "".join(
        f"<tr><td style='color:{muted}; padding-right:8px'>{escape(name)}</td><td>{value}</td></tr>"
        for name, value in rows
        if value
    )
    return f"<table cellspacing=0 cellpadding=1>{cells}</table>"


def _breakable(text: str) -> str:
    """`text` with places, of no width, at which a line may end within its long words: they would be cut."""
    return _LONG.sub(lambda word: _UNBROKEN.sub("\\g<0>\u200b", _PARTS.sub("\\g<0>\u200b", word[0])), text)


def home(session: Session) -> str:
    """Which module the selection is of, where there are several."""
    entry = session.entry(session.selection.entry)
    return session.label(entry.module) if entry is not None and len(session.modules) > 1 else ""


def heading(instruction: HloInstructionProto, muted: str, of: str) -> str:
    """Name and opcode, and the module it is `of` where there are several."""
    name = escape(_breakable(instruction.name))
    opcode = f"<span style='color:{muted}'>{escape(instruction.opcode + (f' of {of}' if of else ''))}</span>"
    return f"<p style='margin:0'><b style='font-size:large'>{name}</b><br>{opcode}</p>"


def cost_table(variant: Variant, instruction: HloInstructionProto, muted: str) -> str:
    """Shape, times with their origins, flops and traffic."""
    price = price_of(variant, instruction.id)
    rows = [("shape", escape(shape_text(instruction)).replace(",", ",\u200b"))]
    if price is not None:
        origin = f"{SOURCES[price.origin]}, {SCALED}" if price.scaled else SOURCES[price.origin]
        source = f" <span style='color:{muted}'>{origin}</span>" if origin else ""
        rows.append(("compute", time_text(price.compute) + source if price.compute else ""))
        rows.append(("transfer", time_text(price.transfer) + source if price.transfer else ""))
        rows.append(("flops", count_text(price.flops) if price.flops else ""))
        rows.append(("HBM traffic", bytes_text(price.hbm_bytes) if price.hbm_bytes else ""))
    return _table(rows, muted)


def verdict(candidate: Candidate | None) -> str:
    """What was decided about a collective, and why."""
    if candidate is None:
        return ""
    case = f"{candidate.case}, " if candidate.case else ""
    mark = "● decomposed" if candidate.chosen else "○ left as it is"
    form = f" ({escape(candidate.variant)})" if candidate.variant else ""
    trips = f", runs {candidate.trips:,} times" if candidate.trips > 1 else ""
    head = f"{mark}{form}<br>{escape(candidate.kind)}: {case}N = {candidate.group_size}{trips}"
    return _section("Verdict", f"<p style='margin:0'>{head}<br>{escape(candidate.reason)}</p>")


def times_table(session: Session, muted: str) -> str:
    """When the selection runs in each variant."""
    rows = times_of(session)
    if not rows:
        return ""
    head = "".join(
        f"<td align=right style='color:{muted}; padding-left:6px'>{h}</td>"
        for h in ("start", "end", "slack", "exposed")
    )
    body = ""
    for row in rows:
        slack = time_text(row.slack) if row.slack is not None else "–"
        values = (time_text(row.start), time_text(row.end), slack, time_text(row.exposed) if row.exposed else "–")
        cells = "".join(f"<td align=right style='padding-left:6px'>{v.replace(' ', '&nbsp;')}</td>" for v in values)
        parts = f"<span style='color:{muted}'>&nbsp;×{row.parts}</span>" if row.parts > 1 else ""
        entry = session.entry(row.key)
        old = (
            f"<span style='color:{muted}'>&nbsp;⟳ earlier plan</span>" if entry and (entry.stale or entry.error) else ""
        )
        body += f"<tr><td><b>{escape(row.key)}</b>{parts}{old}</td>{cells}</tr>"
    return _section(
        "In each variant",
        f"<table cellspacing=0 cellpadding=1 style='font-size:small'><tr><td></td>{head}</tr>{body}</table>",
    )


def waiting(session: Session) -> str:
    """Why compute waits for the selection."""
    sentences = why_exposed(session)
    return _section("Why exposed", "".join(f"<p style='margin:0'>{escape(s)}</p>" for s in sentences))


def early_ones(session: Session) -> tuple[Early, ...]:
    """What in the active variant stands for the selected transfer, as far as a fusion waits for it too early."""
    entry = session.active_entry
    if entry is None or entry.variant is None or entry not in session.beside(session.selection.entry):
        return ()
    ids = standing_for(session, entry.key, session.selection.instructions[-1:])
    found = (early for id_ in sorted(ids) for early in early_of(entry.variant, id_))
    return tuple({(early.done, early.fusion.instruction): early for early in found}.values())


def early_fusion(host: Host, session: Session) -> str:
    """Which fusion of the active variant waits for a transfer too early, and what another decision makes of it."""
    entry = session.active_entry
    if entry is None:
        return ""
    body, open_ones = "", False
    for early in early_ones(session):
        tried = tried_of(host, entry, early.fusion)
        body += f"<p style='margin:0 0 4px 0'>{escape(early.said(tried))}</p>"
        open_ones |= len(tried) < len(early.fusion.alternatives)
    if open_ones:
        body += "<p style='margin:0'><a href='try:'>Try the other decisions</a></p>"
    return _section(f"Fusion, in {entry.key}", body)


def decision(key: str, variant: Variant, instruction: int, said: Sequence[str] | None, *, asking: bool) -> str:
    """Why the scheduler of entry `key` put it where it is; where that is not `said` yet, that it is found out, or how
    to ask."""
    title = f"Place, in {key}"
    if said is not None:
        return _section(title, "".join(f"<p style='margin:0 0 4px 0'>{escape(text)}</p>" for text in said))
    if asking:
        return _section(title, "<p style='margin:0'>Explaining …</p>")
    if not is_executed(variant, instruction) and price_of(variant, instruction) is None:
        return ""
    return _section(title, f"<p style='margin:0'><a href='explain:{instruction}'>Explain why it is where it is</a></p>")


def neighbours(variant: Variant, instruction: HloInstructionProto, muted: str) -> str:
    """Links to operands and users."""
    parts = ""
    for title, users in (("Operands", False), ("Users", True)):
        links = links_of(variant, instruction, users=users)
        shown = ", ".join(
            f"<a href='instruction:{link.instruction}'>{escape(link.name)}</a>" for link in links[:_MOST_LINKS]
        )
        more = f" <span style='color:{muted}'>and {len(links) - _MOST_LINKS} more</span>"
        body = shown + (more if len(links) > _MOST_LINKS else "")
        parts += _section(title, f"<p style='margin:0'>{body}</p>" if body else "")
    return parts


def source_place(instruction: HloInstructionProto, muted: str) -> str:
    """Where in the job's program it comes from."""
    meta = instruction.metadata
    place = f"{meta.source_file}:{meta.source_line}" if meta.source_file else ""
    rows = [("op_name", escape(meta.op_name).replace("/", "/\u200b")), ("line", escape(place).replace("/", "/\u200b"))]
    return _section("Source", _table(rows, muted) if meta.op_name or place else "")


def _proof(variant: Variant) -> str:
    """What the scheduler proved about the best order; empty where it proved nothing."""
    if variant.proven is None:
        return ""
    return f"no faster than {time_text(variant.proven)}, proven by {variant.schedule.scheduler}: {variant.proof}"


def held_back(session: Session) -> str:
    """What the budget did to the selected instruction, in the active variant."""
    entry = session.active_entry
    if entry is None or entry.variant is None:
        return ""
    ids = set(shown_in(session, entry.key))
    found = [sentence(entry.variant, held) for held in entry.variant.held if held.instruction in ids][:_MOST_HELD]
    body = "".join(f"<p style='margin:0 0 4px 0'>{escape(what)}: {escape(why)}.</p>" for what, why in found)
    return _section(f"Budget, in {entry.key}", body)


def _peak(variant: Variant) -> str:
    """Against the chip's HBM, whether it fits or not."""
    room = f"of {bytes_text(variant.program.machine.chip.hbm_bytes)} HBM"
    text = f"{bytes_text(variant.metrics.peak_memory)} {room}"
    return f"<b>{OVER} {text}</b>" if variant.over_memory else text


_SIMULATED = frozenset({"lower bound", "peak memory", "most in flight", "FLOPS utilization"})
"""What profiles do not tell."""


def _noted(kind: Kind, *, every: bool) -> str:
    """Notes of one kind, and what opens or folds the rest of them."""
    said = [escape(_breakable(note)) for note in (*kind.shown, *(kind.more if every else ()))]
    if kind.more:
        said.append(f'<a href="{NOTES}">{"fewer" if every else kind.counted}</a>')
    return "".join(f"<p style='margin:0 0 4px 0'>{text}</p>" for text in said)


def about_variant(session: Session, *, every_note: bool = False) -> str:
    """What stands there while nothing is selected: figures of the active variant, and what they assume; many notes of
    one kind are folded unless `every_note` is asked for."""
    entry = session.active_entry
    if entry is not None and entry.variant is None and entry.error:
        return f"<p><b>{entry.key} {entry.ending}</b></p><p>{escape(entry.error)}</p>"
    if entry is None or entry.variant is None:
        first = "Select an instruction" if session.entries else "Open a module and select an instruction"
        return f"<p>{first} to see what it is, what it costs and why it waits.</p>"
    variant = entry.variant
    metrics = variant.metrics
    rows = [
        ("makespan", time_text(metrics.makespan)),
        ("lower bound", time_text(metrics.lower_bound)),
        ("best order", _proof(variant)),
        ("compute", time_text(metrics.compute)),
        ("communication", time_text(metrics.comm)),
        ("exposed", time_text(metrics.exposed)),
        ("overlapped", f"{metrics.overlap_fraction:.0%}" if metrics.transfer_union else "no transfers to overlap"),
        ("peak memory", _peak(variant)),
        ("most in flight", str(metrics.max_in_flight)),
        ("FLOPS utilization", f"{metrics.flops_utilization:.0%}"),
        ("times from", origin_text(variant)),
    ]
    if variant.is_measured:
        rows = [row for row in rows if row[0] not in _SIMULATED]
    check = _section("Numbers", f"<p style='margin:0'>{escape(entry.check.text)}</p>") if entry.check else ""
    facts = session.facts
    notes = (*(facts.notes if facts is not None else ()), *variant.notes)
    listed = "".join(_noted(kind, every=every_note) for kind in by_kind(notes))
    called = escape(_breakable(session.title_of(entry)))
    title = f"<p style='margin:0'><b style='font-size:large'>{entry.key}&nbsp; {called}</b></p>"
    warning = _section(
        "Memory", f"<p style='margin:0'>{escape(variant.memory_warning)}</p>" if variant.over_memory else ""
    )
    given_way = _section("Default plan", f"<p style='margin:0'>{escape(entry.remark)}</p>" if entry.remark else "")
    return title + _table(rows, "gray") + warning + check + given_way + _section("Assumed", listed)

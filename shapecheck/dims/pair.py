"""Can this draft serve this target? The findings that two configs alone can decide."""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.codes import NAMES
from shapecheck.diagnostics.model import Diagnostic, DimPair, Note, Severity
from shapecheck.dims.config_file import Reading
from shapecheck.dims.model_config import ModelConfig
from shapecheck.dims.speculation import Speculation

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTE)

# Embedding tables are padded to a multiple of at most this; more is another tokenizer.
_VOCAB_PADDING = 1024


def check_pair(
    target: ModelConfig, draft: ModelConfig | None, spec: Speculation
) -> list[Diagnostic]:
    """Every finding, errors first; an empty list means that the configs agree."""
    found = list(_ranks("target", target, spec.tp))
    if draft is not None:
        found += _ranks("draft", draft, spec.draft_tp)
        found += _kind(draft, spec)
        found += _fed_width(target, draft, spec)
        found += _aux_layers(target, draft, spec)
        found += _token_ids(target, draft, spec)
        found += _draft_head(target, draft, spec)
        found += _positions(target, draft)
        found += _dtypes(target, draft)
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))


def _ranks(model: str, config: ModelConfig, tp: int) -> Iterator[Diagnostic]:
    for name, reading, unit in (
        ("heads", config.heads, "attention heads"),
        ("kv_heads", config.kv_heads, "key/value heads"),
        ("ffn", config.ffn, "MLP columns"),
    ):
        if reading is None or reading.value % tp == 0:
            continue
        if name == "kv_heads" and tp > reading.value and tp % reading.value == 0:
            continue  # one key/value head is replicated over several ranks
        whole = ", or keep the draft whole on every rank (draft_tp=1)" if model == "draft" else ""
        yield _finding(
            "SHP204",
            f"{model}_{name}: {reading.value} {unit} do not divide among tp={tp}",
            config,
            reading,
            _found(reading),
            _remedy(f"choose a tp that divides {reading.value}{whole}"),
            dims=DimPair(expected=f"{model}_{name}", found="tp"),
        )


def _kind(draft: ModelConfig, spec: Speculation) -> Iterator[Diagnostic]:
    """The draft is of the kind that the algorithm runs: a whole model, a head, MTP layers."""
    named = " ".join(draft.architectures).lower()
    is_eagle3 = "eagle3" in named or draft.num_aux is not None
    is_eagle = is_eagle3 or "eagle" in named or draft.target_hidden is not None
    remedy = ""
    match spec.algorithm:
        case "standalone" if is_eagle:
            what = "a head that reads target hidden states, not a model that runs alone"
            remedy = f"choose algorithm {'eagle3' if is_eagle3 else 'eagle'}, or a whole model"
        case "eagle" if is_eagle3:
            what = "an EAGLE-3 head, which reads several target layers"
            remedy = "choose algorithm eagle3"
        case "eagle3" if "eagle" in named and not is_eagle3:
            what = "an EAGLE-1 head, which reads the last target layer alone"
            remedy = "choose algorithm eagle, or an EAGLE-3 head"
        case "eagle" | "eagle3" if not is_eagle and draft.layers.value > 1:
            what = f"a whole model of {draft.layers.value} layers, not a head"
            remedy = "choose algorithm standalone, or the head trained for this target"
        case "mtp" if draft.nextn_layers is None:
            what = "a checkpoint without MTP layers (no num_nextn_predict_layers)"
            remedy = "choose another algorithm, or a checkpoint that ships them"
        case _:
            return
    kind = ", ".join(draft.architectures) or "no architecture named"
    yield _finding(
        "SHP204",
        f"algorithm {spec.algorithm}: the draft is {what}",
        draft,
        None,
        Note(label="found", message=f"{kind} (architectures in {draft.label})"),
        _remedy(remedy),
        key="architectures",
    )


def _fed_width(target: ModelConfig, draft: ModelConfig, spec: Speculation) -> Iterator[Diagnostic]:
    """The hidden states the target gives are as wide as the weights of the head want them."""
    fed, hidden = draft.fed_width(), target.hidden
    if spec.feeds_hidden and fed.value != hidden.value:
        assumed = (
            "the head was trained for another target"
            if draft.target_hidden
            else "the head has no target_hidden_size, so it reads its own width"
        )
        yield _finding(
            "SHP201",
            f"extend_hidden: the head reads target hidden states of {fed.value}, "
            f"target_hidden is {hidden.value}",
            draft,
            fed,
            _expected("target_hidden", hidden),
            _found(fed),
            Note(message=assumed),
            _remedy("use the head that was trained for this target"),
            dims=DimPair(
                expected="target_hidden",
                found="target_hidden_size" if draft.target_hidden else "draft_hidden",
            ),
        )


def _aux_layers(target: ModelConfig, draft: ModelConfig, spec: Speculation) -> Iterator[Diagnostic]:
    """An EAGLE-3 head reads as many target layers as it is given, and they exist."""
    if spec.algorithm != "eagle3":
        return
    own = draft.num_aux
    if spec.num_aux is not None and own is not None and spec.num_aux != own.value:
        yield _finding(
            "SHP204",
            f"num_aux: the head reads {own.value} target layers, num_aux is {spec.num_aux}",
            draft,
            own,
            _expected("num_aux", own),
            Note(label="found", message=f"{spec.num_aux} (argument num_aux)"),
            _remedy(f"leave num_aux out, or set it to {own.value}"),
            dims=DimPair(expected="num_aux", found="num_aux"),
        )
    last = max(draft.aux_layers, default=0)
    if own is not None and last > target.layers.value:
        yield _finding(
            "SHP204",
            f"num_aux: the head reads target layer {last}, target_layers is {target.layers.value}",
            draft,
            own,
            _expected("target_layers", target.layers),
            Note(label="found", message=f"{list(draft.aux_layers)} ({own.origin})"),
            _remedy("use the head that was trained for this target"),
            dims=DimPair(expected="target_layers", found="num_aux"),
        )


def _token_ids(target: ModelConfig, draft: ModelConfig, spec: Speculation) -> Iterator[Diagnostic]:
    """Every token id of one model is a row of the other's embedding table."""
    own, real = draft.vocab, target.vocab
    if own.value == real.value:
        return
    padding = spec.algorithm == "standalone" and abs(own.value - real.value) < _VOCAB_PADDING
    if padding:
        advice = (
            "if the tokenizers are the same and the tables are only padded differently, an engine "
            "must mask the ids that one side lacks; some refuse such a pair"
        )
    elif spec.algorithm == "standalone":
        advice = "choose a draft with the target's tokenizer: ids of one mean nothing to another"
    else:
        advice = "use the head that was trained for this target: it embeds the target's ids"
    yield _finding(
        "SHP305",
        f"draft_vocab: the draft embeds {own.value} token ids, target_vocab is {real.value}",
        draft,
        own,
        _expected("target_vocab", real),
        _found(own),
        _remedy(advice),
        severity=Severity.WARNING if padding else Severity.ERROR,
        dims=DimPair(expected="target_vocab", found="draft_vocab"),
    )


def _draft_head(target: ModelConfig, draft: ModelConfig, spec: Speculation) -> Iterator[Diagnostic]:
    """The head scores no more ids than the target has, and enough for topk."""
    head = draft.draft_vocab if spec.algorithm != "standalone" else None
    if head is None and spec.algorithm == "eagle3":
        yield _finding(
            "SHP305",
            f"draft_vocab: the head names no draft_vocab_size, so all {draft.vocab.value} ids of "
            "its vocab_size are taken to be scored",
            draft,
            draft.vocab,
            _remedy("add draft_vocab_size if the checkpoint has a d2t table"),
            severity=Severity.WARNING,
            dims=DimPair(expected="draft_vocab", found="target_vocab"),
        )
    if head is not None and head.value > target.vocab.value:
        yield _finding(
            "SHP305",
            f"draft_vocab: the head scores {head.value} ids, target_vocab is {target.vocab.value}",
            draft,
            head,
            _expected("target_vocab", target.vocab),
            _found(head),
            _remedy("use the head that was trained for this target"),
            dims=DimPair(expected="target_vocab", found="draft_vocab"),
        )
    scored = head or draft.vocab
    if spec.topk > scored.value:
        yield _finding(
            "SHP204",
            f"topk: {spec.topk} candidates of a draft_vocab of {scored.value}",
            draft,
            scored,
            _found(scored),
            _remedy(f"lower topk to {scored.value} or less"),
            dims=DimPair(expected="draft_vocab", found="topk"),
        )


def _positions(target: ModelConfig, draft: ModelConfig) -> Iterator[Diagnostic]:
    own, real = draft.max_positions, target.max_positions
    if own is not None and real is not None and own.value < real.value:
        yield _finding(
            "SHP204",
            f"max_context: the draft was trained for {own.value} positions, the target for "
            f"{real.value}",
            draft,
            own,
            _expected("max_context", real),
            _found(own),
            _remedy("expect fewer accepted tokens beyond the draft's positions, or cap the length"),
            severity=Severity.NOTE,
            dims=DimPair(expected="max_context", found="max_position_embeddings"),
        )


def _dtypes(target: ModelConfig, draft: ModelConfig) -> Iterator[Diagnostic]:
    if draft.dtype is None or target.dtype is None or draft.dtype == target.dtype:
        return
    yield _finding(
        "SHP304",
        f"dtype: the draft is {draft.dtype}, the target {target.dtype}",
        draft,
        None,
        Note(label="expected", message=f"{target.dtype} (dtype of {target.label})"),
        Note(label="found", message=f"{draft.dtype} (dtype of {draft.label})"),
        _remedy("load both in one dtype, or cast where target hidden states enter the draft"),
        severity=Severity.NOTE,
        dims=DimPair(expected="target_dtype", found="draft_dtype"),
        key="torch_dtype" if "torch_dtype" in draft.file.text else "dtype",
    )


def _finding(
    code: str,
    message: str,
    config: ModelConfig,
    reading: Reading | None,
    *notes: Note,
    severity: Severity = Severity.ERROR,
    dims: DimPair | None = None,
    key: str = "",
) -> Diagnostic:
    return Diagnostic(
        code=code,
        name=NAMES[code],
        message=message,
        severity=severity,
        primary=config.file.span(reading.key if reading else key),
        notes=notes,
        dims=dims,
    )


def _expected(name: str, reading: Reading) -> Note:
    return Note(label="expected", message=f"{name} = {reading.value} ({reading.origin})")


def _found(reading: Reading) -> Note:
    return Note(label="found", message=f"{reading.value} ({reading.origin})")


def _remedy(text: str) -> Note:
    return Note(label="remedy", message=text)

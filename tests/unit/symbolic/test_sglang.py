"""sglang 0.5.11 under trace, taken from the release: its public bug, and its clean draft loop."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from shapecheck import Dims
from shapecheck.symbolic import trace

release = pytest.importorskip("shapecheck.static.release", reason="the release fetcher")

pytestmark = pytest.mark.network

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
SPECULATIVE = "sglang.srt.speculative"
MODE = "sglang.srt.model_executor.forward_batch_info:CaptureHiddenMode"


@pytest.fixture(scope="module")
def root() -> Path:
    try:
        return release.fetch(release.parse_release("pypi:sglang==0.5.11"))
    except release.ReleaseError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def dims() -> Dims:
    """Both models 4096 wide."""
    one = CONFIGS / "llama-3-8b"
    return Dims.from_configs(one, one, algorithm="standalone", num_steps=3, topk=4,
                             num_draft_tokens=8)  # fmt: skip


def test_idle_and_merge_meet_at_the_cat(root, dims):
    with trace(dims) as t:
        draft_input = t.load(root, f"{SPECULATIVE}.eagle_info:EagleDraftInput")
        idle = draft_input.create_idle_input(
            device="cuda",
            hidden_size=t.dims["draft_hidden"],
            dtype=t.dtype("draft"),
            topk=t.dims["topk"],
            capture_hidden_mode=t.load(root, MODE).LAST,
        )
        live = draft_input(
            topk_p=t.tensor("bs topk", device="cuda"),
            topk_index=t.tensor("bs topk", torch.int64, device="cuda"),
            hidden_states=t.tensor("bs target_hidden", "target", device="cuda"),
            verified_id=t.tensor("bs", torch.int32, device="cuda"),
        )
        idle.merge_batch(live)
    report = t.report()
    by_code = {finding.code: finding for finding in report.findings}
    assert set(by_code) == {"SHP301", "SHP304"}
    meeting = by_code["SHP301"]
    assert {meeting.dims.expected, meeting.dims.found} == {"draft_hidden", "target_hidden"}
    assert meeting.primary.path.endswith("sglang/srt/speculative/eagle_info.py")
    assert meeting.primary.line == 850
    made = {note.label: note.span.line for note in meeting.notes if note.span is not None}
    assert made["draft_hidden"] == 731
    assert set(made) == {"draft_hidden", "target_hidden"}
    assert dims["draft_hidden"] == dims["target_hidden"] == 4096


@pytest.mark.parametrize(
    ("shape", "found"), [("bs topk", []), ("topk bs", [("SHP303", {"bs", "topk"})])]
)
def test_the_draft_loop_is_clean_and_swapped_axes_are_one_root(root, shape, found):
    with trace() as t:
        worker_class = t.load(root, f"{SPECULATIVE}.eagle_worker:EAGLEWorker")
        draft_input = t.load(root, f"{SPECULATIVE}.eagle_info:EagleDraftInput")

        class Runner:
            """Stands in for the draft model."""

            def forward(self, batch, skip_attn_backend_init=False):
                rows = batch.input_ids.shape[0]
                logits = torch.empty((rows, t.dims["draft_vocab"]))
                hidden = torch.empty((rows, t.dims["draft_hidden"]))
                output = SimpleNamespace(next_token_logits=logits, hidden_states=hidden)
                return SimpleNamespace(logits_output=output)

        worker = SimpleNamespace(
            hot_token_id=None,
            topk=t.dims["topk"],
            speculative_num_steps=t.dims["num_steps"],
            speculative_num_draft_tokens=t.dims["num_draft_tokens"],
            draft_model_runner=Runner(),
            server_args=SimpleNamespace(speculative_algorithm="EAGLE"),
            draft_attn_backend=SimpleNamespace(attn_backends=[None] * 20),
        )
        batch = SimpleNamespace(
            batch_size=t.dims["bs"],
            positions=t.tensor("bs*topk", torch.int64),
            out_cache_loc=t.tensor("bs*topk*num_steps", torch.int64),
            spec_info=draft_input(
                topk_p=t.tensor("bs topk"),
                topk_index=t.tensor(shape, torch.int64),
                hidden_states=t.tensor("bs draft_hidden"),
            ),
        )
        worker_class.draft_forward(worker, batch)
    report = t.report()
    roots = [(item.code, {item.dims.expected, item.dims.found}) for item in report.findings]
    assert roots == found, report.text()
    assert report.checked_operations > 20

"""The Python API: stops, limits, streams, refusals, figures."""

from __future__ import annotations

import pytest
import torch

from engine import LLM, EngineError, SamplingParams
from engine.scheduler.request import Request

from .conftest import drafted_by, slots_add_up, tiny

GREEDY = SamplingParams(max_tokens=14, temperature=0.0, ignore_eos=True)


def test_prompts_of_every_kind() -> None:
    llm = tiny("ngram")
    text, ids = "hello", list(b"hello")
    single = llm.generate(text, GREEDY)
    assert len(single) == 1
    assert single[0].prompt_token_ids == tuple(ids)
    assert llm.generate(ids, GREEDY)[0].token_ids == single[0].token_ids
    both = llm.generate([text, ids], [GREEDY, GREEDY])
    assert [output.token_ids for output in both] == [single[0].token_ids] * 2


def test_length_ends_a_text() -> None:
    output = tiny("ngram").generate("hello", GREEDY)[0]
    assert output.finish_reason == "length"
    assert len(output.token_ids) == 14
    assert output.text == bytes(output.token_ids).decode("utf-8", errors="replace")


@pytest.mark.parametrize("algorithm", ["none", "eagle3"])
def test_stop_token(algorithm: str) -> None:
    whole = tiny("none").generate("hello", GREEDY)[0].token_ids
    params = SamplingParams(max_tokens=14, temperature=0.0, stop_token_ids=(whole[3],))
    output = tiny(algorithm).generate("hello", params)[0]
    assert output.finish_reason == "stop"
    assert output.token_ids == whole[:4]


def test_stop_string_across_tokens_is_cut_off() -> None:
    params = SamplingParams(max_tokens=14, temperature=0.0, stop=("`\x19",))
    whole = tiny("none").generate("hello", GREEDY)[0]
    for llm in (tiny("none"), drafted_by("oracle", num_steps=5)):
        output = llm.generate("hello", params)[0]
        assert output.finish_reason == "stop"
        assert output.text == whole.text.split("`\x19")[0] == "!"
        assert output.token_ids == whole.token_ids[:3]
        assert slots_add_up(llm)


def test_context_ends_a_text() -> None:
    llm = tiny("ngram", max_context=10)
    output = llm.generate("hello", GREEDY)[0]
    assert output.finish_reason == "length"
    assert len(output.prompt_token_ids) + len(output.token_ids) == 10


def test_stream_gives_the_same_text_in_pieces() -> None:
    llm = drafted_by("oracle", num_steps=3)
    whole = llm.generate("hello", GREEDY)[0]
    pieces = list(llm.stream("hello", GREEDY))
    assert "".join(piece.text for piece in pieces) == whole.text
    assert sum((piece.token_ids for piece in pieces), ()) == whole.token_ids
    assert [piece.finish_reason for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert pieces[-1].finish_reason == "length"
    assert len(pieces) < len(whole.token_ids), "several tokens come with one iteration"


def test_closing_a_stream_aborts_the_request() -> None:
    llm = tiny("none", prefix_cache=False)
    stream = llm.stream("hello", GREEDY)
    next(stream)
    stream.close()
    assert not llm.engine.scheduler.unfinished
    assert llm.engine.memory.allocator.owned == 0


def test_streams_run_together() -> None:
    llm = tiny("eagle3")
    wanted = [output.text for output in llm.generate(["hello", "zzz"], GREEDY)]
    streams = [llm.stream("hello", GREEDY), llm.stream("zzz", GREEDY)]
    texts = ["", ""]
    live = [0, 1]
    while live:
        for number in list(live):
            piece = next(streams[number], None)
            if piece is None:
                live.remove(number)
            else:
                texts[number] += piece.text
    assert texts == wanted


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        ("", "no tokens; give at least one"),
        ("x" * 40, "40 tokens and max_context is 32; shorten it or raise max_context"),
        ([5, 999], "prompt token 999 is outside target_vocab=258"),
        ([-1], "prompt token -1 is outside target_vocab=258"),
    ],
)
def test_refused_prompts(prompt: str | list[int], wanted: str) -> None:
    with pytest.raises(EngineError, match=wanted):
        tiny("none", max_context=32).generate([prompt], GREEDY)


def test_request_larger_than_the_pool() -> None:
    llm = tiny("none", num_slots=20)
    with pytest.raises(EngineError, match=r"needs 34 KV slots, the pool has 20; raise num_slots"):
        llm.generate("x" * 19, GREEDY)


def test_a_refused_prompt_leaves_nothing_behind() -> None:
    llm = tiny("ngram")
    with pytest.raises(EngineError, match="no tokens"):
        llm.generate(["hello", ""], GREEDY)
    assert not llm.engine.scheduler.unfinished
    assert slots_add_up(llm)


def test_wrong_number_of_params() -> None:
    with pytest.raises(EngineError, match="2 SamplingParams for 1 prompts"):
        tiny("none").generate("a", [GREEDY, GREEDY])


def test_figures() -> None:
    llm = drafted_by("oracle", num_steps=3)
    output = llm.generate("hello", SamplingParams(max_tokens=9, temperature=0.0, ignore_eos=True))
    assert output[0].metrics.iterations == 2
    assert output[0].metrics.accept_length == 4.0
    found = llm.metrics()
    assert (found.prompt_tokens, found.output_tokens) == (5, 9)
    assert found.accept_length == 4.0
    assert found.acceptance_by_position == (1.0, 1.0, 1.0)
    phases = {"prefill", "draft extend", "draft decode", "verify", "commit", "read back"}
    assert set(found.seconds) == phases
    assert 0 < sum(found.seconds.values()) < found.busy_seconds
    assert found.tokens_per_second == 9 / found.busy_seconds
    llm.reset_metrics()
    assert llm.metrics().output_tokens == 0
    assert llm.metrics().tokens_per_second == 0.0


def test_two_engines_do_not_mix() -> None:
    first, second = tiny("eagle3"), tiny("standalone", num_steps=2)
    wanted = [first.generate("hello", GREEDY), second.generate("zzz", GREEDY)]
    one: Request = first.engine.add(first.tokenizer.encode("hello"), GREEDY)
    two: Request = second.engine.add(second.tokenizer.encode("zzz"), GREEDY)
    while one.finish is None or two.finish is None:
        first.engine.turn()
        second.engine.turn()
    assert tuple(one.output) == wanted[0][0].token_ids
    assert tuple(two.output) == wanted[1][0].token_ids


def test_a_folder_serves_as_target_and_draft(tmp_path: object) -> None:
    """Everything through files: config.json, safetensors, tokenizer.json."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    from .conftest import as_transformers

    reference = tiny("none")
    theirs = as_transformers(reference.engine.pair.target)
    theirs.save_pretrained(tmp_path)
    # Bytes as ids, so that both tokenizers give the same ones.
    table = {chr(b) if 33 <= b < 127 else f"<{b}>": b for b in range(258)}
    inner = tokenizers.Tokenizer(models.BPE(vocab=table, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.save(f"{tmp_path}/tokenizer.json")
    wanted = reference.generate("hello", GREEDY)[0].token_ids
    llm = LLM(str(tmp_path), draft=str(tmp_path), algorithm="standalone", num_steps=3)
    output = llm.generate("hello", GREEDY)[0]
    assert output.token_ids == wanted
    assert output.metrics.accept_length > 3


@pytest.mark.parametrize("drafting", ["best", "drawn"])
@pytest.mark.parametrize("algorithm", ["none", "standalone", "eagle", "eagle3"])
def test_other_dtypes_cross_every_boundary(algorithm: str, drafting: str, full: None) -> None:
    """Hidden states and pools follow the engine's dtype, laws and logits stay fp32."""
    llm = tiny(algorithm, dtype="bfloat16", drafting=drafting, graphs=True)
    outputs = llm.generate(["hello", "zzz"], GREEDY)
    assert [len(output.token_ids) for output in outputs] == [14, 14]
    assert llm.engine.target_pool.keys_ZCE[0].dtype is torch.bfloat16
    assert slots_add_up(llm)

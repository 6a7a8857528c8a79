"""Drawn batches for verifiers: trees with their laws, target laws and coins, edges included."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.sampling import (
    BatchControls,
    HotVocab,
    SamplingParams,
    Stream,
    TreeLaw,
    coins,
    draw_root,
    draw_step,
    sampling_law,
)
from engine.tree import (
    Accepted,
    TreeStructure,
    build_tree,
    first_level,
    next_level,
    rank_scores,
)

EDGES = (0.0, 1 - 2.0**-24, 1 - 2.0**-53)


@dataclass(frozen=True, kw_only=True)
class DrawnBatch:
    """What a verifier is called with."""

    target: Tensor
    tokens: Tensor
    law: TreeLaw
    vocab: HotVocab
    structure: TreeStructure
    accept: Tensor
    final: Tensor
    accept_width: int

    def on(self, device: str) -> "DrawnBatch":
        """The same batch on another device."""
        links = self.structure
        return DrawnBatch(
            target=self.target.to(device),
            tokens=self.tokens.to(device),
            law=self.law.mapped(lambda probs: probs.to(device)),
            vocab=replace(
                self.vocab, hot=self.vocab.hot.to(device), cold=self.vocab.cold.to(device)
            ),
            structure=TreeStructure(
                tree_mask=links.tree_mask.to(device),
                positions=links.positions.to(device),
                next_child=links.next_child.to(device),
                next_sibling=links.next_sibling.to(device),
            ),
            accept=self.accept.to(device),
            final=self.final.to(device),
            accept_width=self.accept_width,
        )

    def along_links(self, verifier) -> Accepted:
        """The verdict of accept_tree or what stands in for it."""
        links = (self.structure.next_child, self.structure.next_sibling)
        inputs = (self.target, self.tokens, self.law, self.vocab, *links, self.accept, self.final)
        return verifier(*inputs, accept_width=self.accept_width)

    def along_chain(self, verifier) -> Accepted:
        """The verdict of accept_chain."""
        inputs = (self.target, self.tokens, self.law, self.vocab, self.accept, self.final)
        return verifier(*inputs, accept_width=self.accept_width)


def random_logits(generator: torch.Generator, *shape: int) -> Tensor:
    """Logits of which a third is impossible; the last token never is."""
    device = generator.device
    logits = torch.randn(shape, generator=generator, device=device) * 2
    cut = torch.rand(shape, generator=generator, device=device) < 0.33
    cut[..., -1] = False
    return logits.masked_fill(cut, -torch.inf)


def random_coins(generator: torch.Generator, *shape: int) -> Tensor:
    """Uniform coins, a third of them at an edge."""
    device = generator.device
    values = torch.rand(shape, generator=generator, dtype=torch.float64, device=device)
    edges = torch.tensor(EDGES, dtype=torch.float64, device=device)
    edge = edges[torch.randint(len(EDGES), shape, generator=generator, device=device)]
    third = torch.rand(shape, generator=generator, device=device) < 0.33
    return torch.where(third, edge, values)


def drawn_batch(
    *,
    topk: int,
    num_steps: int,
    width: int,
    rows: int,
    target_vocab: int,
    hot: list[int] | None = None,
    padded: int = 0,
    seed: int = 0,
    device: str = "cpu",
) -> DrawnBatch:
    """Trees drawn by the engine's own samplers; the last `padded` rows have no law.

    Some candidates are foreign to their law (q = 0), and some target laws equal the draft's.
    """
    place = torch.device(device)
    generator = torch.Generator(place).manual_seed(seed)
    params = [SamplingParams(temperature=(0.0, 0.7, 1.0)[row % 3]) for row in range(rows)]
    controls = BatchControls.of(params, range(rows), device=place)
    vocab = HotVocab.whole(target_vocab, device=place)
    if hot is not None:
        offsets = torch.tensor(hot, device=place) - torch.arange(len(hot), device=place)
        vocab = HotVocab.from_offsets(offsets, target_vocab=target_vocab)
    draft_vocab = len(vocab.hot)
    at = torch.zeros(rows, dtype=torch.int64, device=place)
    lanes = coins(controls.seeds, at, Stream.DRAFT, lanes=topk)
    tokens, root = draw_root(random_logits(generator, rows, draft_vocab), controls, lanes)
    level, frontier = first_level(rank_scores(rows, topk, device=place), vocab.target_ids(tokens))
    levels, steps = [level], []
    for step in range(1, num_steps):
        each = (rows * topk, topk)
        tokens, law = draw_step(
            random_logits(generator, each[0], draft_vocab),
            controls,
            torch.rand(each, generator=generator, dtype=torch.float64, device=place),
        )
        scores = rank_scores(*each, device=place)
        level, frontier = next_level(frontier, scores, vocab.target_ids(tokens), step=step)
        levels.append(level)
        steps.append(law)
    tree = build_tree(levels, at, at, topk=topk, num_draft_tokens=width, drawn=True)
    assert tree.law_columns is not None
    size = (rows, width)
    foreign = torch.rand(size, generator=generator, device=place) < 0.15
    anything = torch.randint(target_vocab, size, generator=generator, device=place)
    whole = TreeLaw.assemble(root, steps, tree.law_columns)
    live_R11 = (torch.arange(rows, device=place) < rows - padded).view(-1, 1, 1)
    law = whole.mapped(lambda probs: probs * live_R11)
    target = sampling_law(random_logits(generator, rows, width, target_vocab), controls)
    same = torch.rand(rows, width, 1, generator=generator, device=place) < 0.2
    spread = vocab.to_target(law.probs.flatten(0, 1)).view(rows, width, target_vocab)
    has_law = law.probs.sum(dim=2, keepdim=True) > 0
    return DrawnBatch(
        target=torch.where(same & has_law, spread, target),
        tokens=torch.where(foreign, anything, tree.draft_tokens),
        law=law,
        vocab=vocab,
        structure=tree.structure,
        accept=random_coins(generator, rows, width),
        final=random_coins(generator, rows),
        accept_width=num_steps + 1,
    )

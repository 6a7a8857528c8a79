"""The operator table: torch name -> how the result's axes follow from the arguments.

A rule is data. `kind` names the shape function (`apply.py`), the other fields say where its
arguments are. Methods are listed by their bare name; the receiver is then the first tensor.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """How one operator makes its result."""

    kind: str
    keyword: str = ""
    dtype: str = ""
    position: int = 0


def _all(kind: str, names: str, **options: str | int) -> dict[str, Operator]:
    return {
        name: Operator(
            kind=kind,
            keyword=str(options.get("keyword", "")),
            dtype=str(options.get("dtype", "")),
            position=int(options.get("position", 0)),
        )
        for name in names.split()
    }


# Functions of `torch` and `torch.nn.functional`.
FUNCTIONS: dict[str, Operator] = {
    **_all("create_variadic", "zeros ones empty rand randn", keyword="size"),
    **_all("create", "full", keyword="size", position=0),
    **_all("create", "randint", keyword="size", position=-1),
    **_all("arange", "arange", dtype="int64"),
    **_all("like", "zeros_like ones_like empty_like full_like rand_like randn_like randint_like"),
    **_all(
        "same",
        "abs neg exp log log2 log1p sqrt rsqrt sigmoid tanh relu gelu silu softmax log_softmax "
        "clamp clamp_min clamp_max clone floor ceil round sign cumsum cumprod flip roll "
        "masked_fill dropout layer_norm rms_norm normalize bitwise_not nan_to_num tril triu renorm "
        "detach",
    ),
    **_all("same", "isnan isinf isfinite logical_not", dtype="bool"),
    **_all(
        "broadcast",
        "add sub mul div true_divide floor_divide remainder fmod pow maximum minimum fmax fmin "
        "eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or lerp",
    ),
    **_all("where", "where"),
    **_all("reduce", "sum mean prod amax amin logsumexp norm std var"),
    **_all("reduce", "all any", dtype="bool"),
    **_all("reduce_pair", "max min median mode kthvalue"),
    **_all("same_pair", "sort cummax cummin"),
    **_all("reduce_index", "argmax argmin count_nonzero", dtype="int64"),
    **_all("topk", "topk"),
    **_all("cat", "cat concat concatenate"),
    **_all("stack", "stack"),
    **_all("gather", "gather take_along_dim"),
    **_all("index_select", "index_select"),
    **_all("matmul", "matmul mm bmm"),
    **_all("linear", "linear"),
    **_all("embedding", "embedding"),
    **_all("view", "reshape", position=1),
    **_all("flatten", "flatten"),
    **_all("pad", "pad"),
    **_all("squeeze", "squeeze"),
    **_all("unsqueeze", "unsqueeze"),
    **_all("transpose", "transpose swapaxes"),
    **_all("permute", "permute"),
    **_all("repeat_interleave", "repeat_interleave"),
    **_all("split", "split"),
    **_all("chunk", "chunk"),
    **_all("opaque", "unbind tensor_split"),
    **_all("einsum", "einsum"),
    **_all("multinomial", "multinomial", dtype="int64"),
    **_all("from_data", "tensor as_tensor from_numpy asarray"),
    **_all("one_hot", "one_hot"),
}

# Methods of a tensor; those of FUNCTIONS apply as well.
METHODS: dict[str, Operator] = {
    **_all("create_variadic", "new_zeros new_ones new_empty", keyword="size"),
    **_all("create", "new_full", keyword="size"),
    **_all(
        "same",
        "to cuda cpu float half bfloat16 double long int bool contiguous detach clone type "
        "pin_memory requires_grad_ clamp_ abs_ exp_ neg_ sqrt_ sigmoid_ masked_fill_ zero_ fill_ "
        "uniform_ normal_ random_ type_as npu xpu musa scatter scatter_add index_add index_fill "
        "index_copy softmax log_softmax",
    ),
    **_all("inplace", "add_ sub_ mul_ div_ logical_or_ logical_and_"),
    **_all("fill", "copy_"),
    **_all("index_fill", "index_copy_ index_add_"),
    **_all("view", "view reshape", position=0),
    **_all("view_as", "view_as reshape_as expand_as"),
    **_all("expand", "expand"),
    **_all("repeat", "repeat tile"),
    **_all("transpose", "transpose"),
    **_all("t", "t"),
    **_all("size", "size"),
    **_all("numel", "numel nelement"),
    **_all("ndim", "dim ndimension"),
    **_all("opaque", "item tolist numpy unique nonzero record_stream stride data_ptr"),
}

_PREFIXES = ("torch.nn.functional.", "torch.Tensor.", "torch.special.", "torch.")


def operator_of(name: str) -> Operator | None:
    """The rule of a function by its dotted name, or of a method written as `.name`."""
    if name.startswith("."):
        method = name[1:]
        return METHODS.get(method) or FUNCTIONS.get(method)
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return FUNCTIONS.get(name[len(prefix) :])
    # An array of indices is made on the host and read by the device: its type has to be known.
    return FUNCTIONS["arange"] if name == "numpy.arange" else None

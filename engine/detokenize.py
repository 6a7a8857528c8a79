"""Incremental detokenising: text as soon as it is certain, characters never in halves."""

from collections.abc import Callable, Sequence

# A character has at most four bytes, hence at most four tokens: what a fifth one does not complete
# began with invalid bytes, which are shown as such.
_LONGEST_CHARACTER = 4
# Enough context for decoders that treat the first token of a text differently.
_CONTEXT = 6
_BROKEN = "�"


class Detokenizer:
    """The text of a growing token list; the pieces joined are the decoded whole.

    `decode` maps ids to text and writes U+FFFD for bytes that form no character. `prompt` is the
    text the first token continues, of whole characters; it is not returned.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], prompt: Sequence[int] = ()) -> None:
        self._decode = decode
        self._window = _context_of(prompt, decode)
        self._shown = len(decode(self._window))
        # Where the tokens since the last whole text begin, and those of an unfinished character.
        self._fresh = self._unsure = len(self._window)

    def push(self, token: int) -> str:
        """The text that has become certain with this token, often empty inside a character."""
        self._window.append(token)
        text = self._decode(self._window)
        certain = text.rstrip(_BROKEN)
        piece = self._release(certain)
        if certain == text:
            self._forget()
        elif piece:
            self._unsure = len(self._window) - 1
        elif len(self._window) - self._unsure > _LONGEST_CHARACTER:
            self._unsure += 1
            piece = self._release(self._decode(self._window[: self._unsure]))
        return piece

    def flush(self) -> str:
        """The rest of the text, unfinished characters as U+FFFD, once no token will follow."""
        return self._release(self._decode(self._window))

    def _release(self, text: str) -> str:
        piece = text[self._shown :]
        self._shown = max(self._shown, len(text))
        return piece

    def _forget(self) -> None:
        """Make the tokens just shown the only context, unless they have no text to lean on."""
        recent = self._window[self._fresh :]
        text = self._decode(recent)
        if text:
            self._window, self._shown = recent, len(text)
        self._fresh = self._unsure = len(self._window)


def _context_of(prompt: Sequence[int], decode: Callable[[Sequence[int]], str]) -> list[int]:
    """The last tokens of the prompt, a few more where the cut would fall inside a character."""
    for size in range(_CONTEXT, _CONTEXT + _LONGEST_CHARACTER):
        context = list(prompt[-size:])
        if not decode(context).startswith(_BROKEN):
            return context
    return list(prompt[-_CONTEXT:])

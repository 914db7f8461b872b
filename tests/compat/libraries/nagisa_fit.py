"""nagisa.fit on a small corpus: python nagisa_fit.py FOLDER. Weights start from FOLDER/start, made by the first run."""

import logging
import os
import random
import sys

import nagisa

folder = sys.argv[1]
sys.path.append(nagisa.__path__[0])
import model as dynet_model  # noqa: E402

make = dynet_model.Model.__init__


def from_fixed_weights(self, hp, params=None, embs=None):
    make(self, hp, params, embs)
    if params is None:
        start = os.path.join(folder, "start")
        (self.model.populate if os.path.exists(start) else self.model.save)(start)


dynet_model.Model.__init__ = from_fixed_weights
WORDS = "日本/名詞 を/助詞 用い/動詞 た/助動詞 RNN/名詞 は/助詞 強い/形容詞 です/助動詞 東京/名詞 学習/名詞 する/動詞".split()
rng = random.Random(1)
for name, sentences in (("train", 40), ("dev", 8), ("test", 8)):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        for _ in range(sentences):
            for _ in range(rng.randint(2, 9)):
                f.write(rng.choice(WORDS).replace("/", "\t") + "\n")
            f.write("EOS\n")


class Losses(logging.Handler):
    """Column 3 of nagisa's log."""

    def emit(self, record):
        columns = record.getMessage().split("\t")
        if columns[0].strip().isdigit():
            print("LOSS", columns[2], *columns[4:])


logging.getLogger().addHandler(Losses())
paths = [os.path.join(folder, n) for n in ("train", "dev", "test")]
nagisa.fit(*paths, os.path.join(folder, "model"), epoch=4, dropout_rate=0.0)
sys.stdout.flush()

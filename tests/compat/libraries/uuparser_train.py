"""uuparser trains and parses a treebank: python uuparser_train.py FOLDER TRAIN DEV OUT [--graph-based].

Dropout inside its LSTMs is taken out, and weights start from FOLDER/start, made by the first run.
"""

import os
import random
import sys

folder, train, dev, out = sys.argv[1:5]
sizes = (
    "char-emb-size 20 char-lstm-output-size 12 word-emb-size 20 lstm-output-size 25 pos-emb-size 8 mlp-hidden-dims 30"
)
options = [f"--{w}" if not w.isdigit() else w for w in sizes.split()]
sys.argv[1:] = ["--outdir", out, "--trainfile", train, "--devfile", dev, "--epochs", "2", "--dynet-seed", "7",
                "--dynet-mem", "200", "--quiet", *options, *sys.argv[5:]]  # fmt: skip
os.makedirs(out, exist_ok=True)
import uuparser.parser as program  # noqa: E402

run = program.run


def from_fixed_weights(experiment, options):
    from uuparser import arc_hybrid, bilstm, mstlstm

    lstm = bilstm.BiLSTM.__init__
    bilstm.BiLSTM.__init__ = lambda self, a, b, m, dropout_rate=None: lstm(self, a, b, m, dropout_rate=0.0)
    for parser in (arc_hybrid.ArcHybridLSTM, mstlstm.MSTParserLSTM):

        def make(self, *args, before=parser.__init__):
            before(self, *args)
            start = os.path.join(folder, "start")
            (self.Load if os.path.exists(start) else self.Save)(start)

        parser.__init__ = make
    random.seed(3)
    run(experiment, options)


program.run = from_fixed_weights
program.main()

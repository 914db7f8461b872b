"""What the recipes share: settings from the command line or a TOML file, the training loop, logs, model files.

    from dynet_lite import harness

A recipe is a script with a dataclass of settings (on `Settings`), a class for the task and its model (on `Recipe`) and
`sys.exit(harness.main(MyRecipe, MySettings, __doc__))`. `import dynet_lite` does not import this package.
"""

from .catalogue import treebank
from .classification import ClassifierSettings, TextClassifier
from .cli import main
from .data import Data, corpus, filled
from .dependencies import ParserRecipe, ParserSettings
from .loop import Diverged, Epoch, train
from .predictor import Predictor
from .ranks import parsed
from .recipe import Recipe, Score
from .settings import Settings, StreamSettings, option, parse_settings
from .spans import SpanLabeller, SpanSettings
from .state import load_recipe, make_recipe, save_recipe
from .streaming import stream_over, streamed

__all__ = [
    "ClassifierSettings",
    "Data",
    "Diverged",
    "Epoch",
    "ParserRecipe",
    "ParserSettings",
    "Predictor",
    "Recipe",
    "Score",
    "Settings",
    "SpanLabeller",
    "SpanSettings",
    "StreamSettings",
    "TextClassifier",
    "corpus",
    "filled",
    "load_recipe",
    "main",
    "make_recipe",
    "option",
    "parse_settings",
    "parsed",
    "save_recipe",
    "stream_over",
    "streamed",
    "train",
    "treebank",
]

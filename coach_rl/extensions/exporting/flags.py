"""The flags of the commands `export` and `card`. Light, like `cli.parser`."""

from pathlib import Path

from coach_rl.cli import values
from coach_rl.cli.flags import A_RUN, again
from coach_rl.cli.parser import Flag

CARD = (
    Flag("RUN", "as of `coach play`", Path),
    Flag("--to FOLDER", "the new folder (default: ./card_ and the experiment's name)", Path),
    Flag("--episodes N", "episodes of the score (default: 100)", values.episodes),
    Flag("--no_film", "write no film of an episode"),
    again("--last_good"),
    again("--trust"),
)
EXPORT = (
    A_RUN,
    Flag("FILE", "the new file: .zip, .onnx or .pt2", Path),
    Flag("--opset N", "version of the ONNX operators (default: 17)", values.positive),
    Flag("--sampling", "in a single graph, draw actions by noise that is an input"),
    again("--last_good"),
    again("--trust"),
)

"""Values of a summary besides scalars: layout, text, hyper-parameters, histograms, films.

Written with the messages of the tensorboard package alone, which needs no TensorFlow.
"""

import io
from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image
from tensorboard.compat.proto.summary_pb2 import (  # type: ignore[import-untyped]  # has no types
    DATA_CLASS_BLOB_SEQUENCE,
    DATA_CLASS_TENSOR,
    Summary,
    SummaryMetadata,
)
from tensorboard.compat.proto.tensor_pb2 import (  # type: ignore[import-untyped]  # has no types
    TensorProto,
)
from tensorboard.compat.proto.types_pb2 import (  # type: ignore[import-untyped]  # has no types
    DT_STRING,
)
from tensorboard.plugins.custom_scalar import (  # type: ignore[import-untyped]  # has no types
    metadata as layout_metadata,
)
from tensorboard.plugins.custom_scalar.layout_pb2 import (  # type: ignore[import-untyped]  # has no types
    Layout,
)
from tensorboard.plugins.histogram import (  # type: ignore[import-untyped]  # has no types
    metadata as histogram_metadata,
)
from tensorboard.plugins.hparams import (  # type: ignore[import-untyped]  # has no types
    api_pb2,
    plugin_data_pb2,
)
from tensorboard.plugins.hparams import (
    metadata as settings_metadata,
)
from tensorboard.plugins.image import (  # type: ignore[import-untyped]  # has no types
    metadata as image_metadata,
)
from tensorboard.plugins.text import (  # type: ignore[import-untyped]  # has no types
    metadata as text_metadata,
)
from tensorboard.util.tensor_util import (  # type: ignore[import-untyped]  # has no types
    make_tensor_proto,
)

from coach_rl.core.records import Array

Setting = bool | float | str
"""The value of a hyper-parameter."""
SCORES = {
    "final_evaluation/reward_mean": "final return",
    "final_evaluation/reward_iqm": "final return (IQM)",
    "final_evaluation/success_rate": "final success rate",
    "evaluation/reward_mean": "last return while training",
    "evaluation/success_rate": "last success rate while training",
    "time/steps_per_second": "steps per second",
}
"""Columns of scores beside the hyper-parameters, and their titles."""


def layout_value(layout: Layout) -> Summary.Value:
    """The layout of the charts; the newest of a run counts."""
    return _value(
        layout_metadata.CONFIG_SUMMARY_TAG,
        _bytes(layout.SerializeToString()),
        layout_metadata.create_summary_metadata(),
    )


def text_value(tag: str, markdown: str) -> Summary.Value:
    """A text in Markdown."""
    return _value(tag, _bytes(markdown.encode()), text_metadata.create_summary_metadata(tag, ""))


def settings_values(settings: Mapping[str, Setting], began: float) -> list[Summary.Value]:
    """Hyper-parameters of a run, and which of its scalars are scores.

    Args:
        settings: The hyper-parameters by name.
        began: When the run began, in seconds since 1970.
    """
    kinds = {bool: api_pb2.DATA_TYPE_BOOL, str: api_pb2.DATA_TYPE_STRING}
    experiment = api_pb2.Experiment(
        hparam_infos=[
            api_pb2.HParamInfo(name=name, type=kinds.get(type(value), api_pb2.DATA_TYPE_FLOAT64))
            for name, value in settings.items()
        ],
        metric_infos=[
            api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag), display_name=title)
            for tag, title in SCORES.items()
        ],
        time_created_secs=began,
    )
    start = plugin_data_pb2.SessionStartInfo(start_time_secs=began)
    for name, value in settings.items():
        match value:
            case bool():
                start.hparams[name].bool_value = value
            case str():
                start.hparams[name].string_value = value
            case _:
                start.hparams[name].number_value = value
    return [
        _settings_value(settings_metadata.EXPERIMENT_TAG, experiment=experiment),
        _settings_value(settings_metadata.SESSION_START_INFO_TAG, session_start_info=start),
    ]


def finished_value(ended: float) -> Summary.Value:
    """The mark that a run has ended, `ended` seconds after 1970."""
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS, end_time_secs=ended)
    return _settings_value(settings_metadata.SESSION_END_INFO_TAG, session_end_info=end)


def histogram_value(tag: str, bins: Array) -> Summary.Value:
    """A histogram, [bins, 3]: left edge, right edge and count, as `statistics.histogram` makes."""
    tensor = make_tensor_proto(np.asarray(bins, np.float64))
    return _value(tag, tensor, histogram_metadata.create_summary_metadata(tag, ""))


def film_value(tag: str, gif: bytes) -> Summary.Value:
    """A film as an animated image."""
    with Image.open(io.BytesIO(gif)) as image:
        sides = [str(side).encode() for side in image.size]
    metadata = image_metadata.create_summary_metadata(display_name=tag, description="")
    return _value(tag, _bytes([*sides, gif]), metadata)


def _settings_value(tag: str, **content: object) -> Summary.Value:
    metadata = settings_metadata.create_summary_metadata(
        plugin_data_pb2.HParamsPluginData(**content)
    )
    return _value(tag, settings_metadata.NULL_TENSOR, metadata)


def _bytes(content: bytes | Sequence[bytes]) -> TensorProto:
    """Bytes as a tensor: a single one without, a sequence with one dimension."""
    if isinstance(content, bytes):
        return TensorProto(dtype=DT_STRING, string_val=[content])
    tensor = TensorProto(dtype=DT_STRING, string_val=content)
    tensor.tensor_shape.dim.add(size=len(content))
    return tensor


def _value(tag: str, tensor: TensorProto, metadata: SummaryMetadata) -> Summary.Value:
    is_film = metadata.plugin_data.plugin_name == image_metadata.PLUGIN_NAME
    metadata.data_class = DATA_CLASS_BLOB_SEQUENCE if is_film else DATA_CLASS_TENSOR
    return Summary.Value(tag=tag, tensor=tensor, metadata=metadata)

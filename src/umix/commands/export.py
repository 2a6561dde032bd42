"""``umix export``."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from umix.commands.flags import Json, ReadThreshold, Select, TrustCode
from umix.terminal import OUT, print_json


def export(
    run: Annotated[Path, Parameter(help="Folder of a finished run on data of your own, or the beginning of its name.")],
    *,
    output: Annotated[
        Path,
        Parameter(
            name=["--output", "-o"],
            help="model.onnx, model.pt2 (torch.export), model.safetensors (a plain state dict), README.md (a model card), or a "
            "folder: state dict, config and card.",
        ),
    ] = Path("model.onnx"),
    format: Annotated[
        Literal["onnx", "pt2", "state_dict", "card", "mlflow"] | None,
        Parameter(help="mlflow makes the folder a model of MLflow. Default: what the suffix of the output says."),
    ] = None,
    select: Select = None,
    threshold: ReadThreshold = None,
    license: Annotated[
        str | None, Parameter(help="Licence that the model card names, as the Hugging Face hub spells it: mit.")
    ] = None,
    trust_code: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Write the model of RUN for other programs, with its preprocessing where that can be included.

    The file's outputs are compared with those of umix predict before it is written.
    """
    from umix.api.result import export as write

    exported = write(
        run, output, format=format, select=select, threshold=threshold, license=license, trust_code=trust_code
    )
    if as_json:
        print_json(exported.as_json())
        return
    OUT.print(str(exported), highlight=False, soft_wrap=True, markup=False)

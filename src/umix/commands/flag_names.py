"""Turns the settings that errors name into flags: ``groups=`` in Python is ``--groups`` on the command line."""

from umix.errors import Setting

#: Flags that are not the setting's name with dashes.
_OTHER = {
    "path_column": "--path",
    "stream": "--no-cache",
    "address": "--ray",
}
#: Settings whose flag is their name with dashes; every other setting is given with ``--set``.
_SAME = frozenset(
    (
        "allow_subset",
        "baseline",
        "budget",
        "cache",
        "choices",
        "cpus",
        "decide",
        "devices",
        "drop",
        "folders",
        "format",
        "freeze",
        "gpus",
        "groups",
        "id",
        "label",
        "label_from",
        "license",
        "log",
        "metadata",
        "min_group",
        "mlflow_uri",
        "name",
        "net",
        "nodes",
        "out",
        "output",
        "range",
        "root",
        "rows",
        "seeds",
        "select",
        "skip_impossible",
        "split",
        "storage",
        "text",
        "threads",
        "trials",
        "trust_code",
        "tune",
        "use_groups",
        "weight",
        "workers",
        "x",
    )
)


def as_flag(setting: Setting) -> str:
    """The setting as it is written on the command line.

    >>> as_flag(Setting("label_from", "folder")), as_flag(Setting("stream", "True")), as_flag(Setting("eta", "3"))
    ('--label-from folder', '--no-cache', '--set eta=3')
    """
    flag = _OTHER.get(setting.name) or (f"--{setting.name.replace('_', '-')}" if setting.name in _SAME else "")
    if not flag:
        return f"--set {setting.name}={setting.value}"
    return flag if setting.value in ("", "True") else f"{flag} {setting.value}"

"""``umix doctor``."""

import dataclasses

from umix.commands.catalogue import print_data_check, print_facts, print_json
from umix.commands.flags import ImageFlags, Json, Root, Subset, TableFlags, TextFlags


def doctor(
    task: str | None = None,
    *,
    root: Root = None,
    allow_subset: Subset = False,
    table: TableFlags | None = None,
    images: ImageFlags | None = None,
    texts: TextFlags | None = None,
    as_json: Json = False,
) -> int | None:
    """Show versions, devices and extras; with TASK check its data without training. Exit code 2 if they are not fine.

    TASK is a name, whose folder is compared with what was published, or the path of your own data: tables, arrays and texts
    are read as for a run and counted, of a folder every image is opened.
    """
    from umix.bench.doctor import check, facts

    if task is not None:
        given = {name: value for flags in (table, images, texts) if flags for name, value in flags.settings().items()}
        options = {name.removeprefix("task."): value for name, value in given.items()}
        examination = check(task, root, allow_subset=allow_subset, **options)
        if as_json:
            found = {**dataclasses.asdict(examination), "folder": str(examination.folder)}
            print_json({"fine": examination.fine, **found, **({"rows": examination.rows} if examination.rows else {})})
        else:
            print_data_check(examination, f"umix doctor {task}")
        return 0 if examination.fine else 2
    machine = facts()
    if as_json:
        print_json(machine)
        return None
    print_facts(machine, "umix doctor")
    return None

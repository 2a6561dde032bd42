"""``umix doctor``."""

import dataclasses

from umix.catalogue import print_examination, print_facts, print_json
from umix.flags import ImageFlags, Json, Root, Subset, TableFlags


def doctor(
    task: str | None = None,
    *,
    root: Root = None,
    allow_subset: Subset = False,
    table: TableFlags | None = None,
    images: ImageFlags | None = None,
    as_json: Json = False,
) -> int | None:
    """Show versions, devices and extras; with TASK (or your folder of images) check its files. Exit code 2 if it is not fine."""
    from umix.bench.doctor import check, facts

    if task is not None:
        given = (table.settings() if table else {}) | (images.settings() if images else {})
        options = {name.removeprefix("task."): value for name, value in given.items()}
        examination = check(task, root, allow_subset=allow_subset, **options)
        if as_json:
            print_json({"fine": examination.fine, **dataclasses.asdict(examination), "folder": str(examination.folder)})
        else:
            print_examination(examination, f"umix doctor {task}")
        return 0 if examination.fine else 2
    found = facts()
    if as_json:
        print_json(found)
        return None
    print_facts(found, "umix doctor")
    return None

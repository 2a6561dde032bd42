"""``umix doctor``."""

import dataclasses

from umix.catalogue import print_examination, print_facts, print_json
from umix.flags import Json, Root, Subset


def doctor(
    task: str | None = None, *, root: Root = None, allow_subset: Subset = False, as_json: Json = False
) -> int | None:
    """Show versions, devices and extras; with TASK check its folder: table, counts, every image. Exit code 2 if it is not fine."""
    from umix.bench.doctor import check, facts

    if task is not None:
        examination = check(task, root, allow_subset=allow_subset)
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

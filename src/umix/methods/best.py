"""The best of the others: a contest between methods, judged on validation with what is known of the groups.

Candidates are ERM, class reweighting, all kinds of weights that UMIX can give, and what known groups allow: mixup with group
weights and GroupDRO, with groups of all training rows or with estimates from a few rows, and with training groups also DFR.
Every candidate is judged with the decision (class biases) that suits it, so "ERM + threshold" is among them. DFR is fitted to
validation itself: there it is judged by two last layers, each on the half that the other was fitted to. Whoever wins is trained as
an ordinary run of its method.

Where validation groups may be used, the worst of them decides. Where they may not, a rule decides that sees classes, the average
and how certain ERM was (``parts.contest``).

Differs from the paper: there is none.
Differs from the released code: there is none.
"""

from itertools import zip_longest
from typing import Any, ClassVar, final

from pydantic import Field

from umix.core.selection import best_score
from umix.errors import UserError
from umix.methods.dfr import DFR
from umix.methods.erm import ERM
from umix.methods.group_dro import GroupDRO
from umix.methods.group_mixup import GroupMixup
from umix.methods.method import Method
from umix.methods.parts.contest import (
    Candidate,
    Standing,
    Verdict,
    by_score,
    chooses_by_groups,
    contest,
    limit_cost,
    score_words,
    simple_candidates,
    standing_of,
)
from umix.methods.parts.mixup_risk import Mixing, require_mixable
from umix.methods.parts.soft_groups import GroupsFrom, SoftGroups, estimated_groups, known_groups
from umix.methods.parts.uncertainty_weights import Measured
from umix.methods.umix import UMIX
from umix.nets.net import Net
from umix.training.race import counts_of
from umix.training.stage import ErmStage
from umix.training.trainer import Trainer

_POWERS = (0.5, 0.75, 1.0)
#: How the names of related candidates begin, by what they are called together.
_FAMILIES = {
    "erm + threshold": "erm",
    "class reweighting": "reweight",
    "UMIX's weights": "umix",
    "group weights": "group_mixup",
    "GroupDRO": "group_dro",
    "DFR": "dfr",
}


@final
class Best(Method):
    """The method that does best on validation, with whatever is known of the groups; the default of umix run."""

    name: ClassVar[str] = "best"
    paper: ClassVar[str] = "a contest between the methods of this library"
    uses_known_groups: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    needs_gradients: ClassVar[bool] = False
    for_nets_only: ClassVar[tuple[str, ...]] = ("mixing",)
    stages: ClassVar[tuple[str, ...]] = ("trajectory", "reference")

    trials: int | None = Field(None, ge=1, description="most candidates to try; none: all that fit the data")
    time: float | None = Field(
        None, gt=0, description="seconds after which the race ends with the round that is running; none: no limit"
    )
    mixing: Mixing = Field("input", description="what is mixed: inputs, boxes of images, or pooled features")

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return self._umix.erm_stages(epochs)

    @property
    def _umix(self) -> UMIX:
        return UMIX(eta="auto", pool="auto", length="auto", mixing=self.mixing)

    def train(self, trainer: Trainer) -> Net:
        require_mixable(self.mixing, trainer)
        measured = self._umix.measure(trainer)
        limit_cost(trainer, measured.best_val)
        tried = self._candidates(measured, trainer)[: self.trials]
        candidates = [one for one in tried if isinstance(one, Candidate)]
        if len(tried) == 1:
            only = candidates[0]
            chosen = f"best trained {only.name}, the only candidate: trials=1 allows no contest."
            trainer.decisions |= {"method": only.method, **only.settings, "chosen": chosen}
            return self._fit(only, measured, trainer)
        verdict = contest(
            trainer,
            candidates,
            uncertain=measured.uncertain,
            content=self.model_dump_json(exclude={"time", "trials"}) + trainer.use_groups,
            time=self.time,
        )
        dfr = next((one for one in tried if isinstance(one, DFR)), None)
        refitted = None if dfr is None else self._standing(dfr, trainer)
        if refitted is not None:
            verdict = verdict.including(refitted)
        trainer.decisions |= said(
            verdict, verdict.standings[0], erm=measured.best_val, decides=trainer.decide == "biases"
        )
        if dfr is not None and verdict.standings[0] is refitted:
            trainer.decisions |= {"method": DFR.name, **verdict.as_json()}
            trainer.trained_with = "validation"
            trainer.keep(uncertainty=measured.train(measured.longest))
            return dfr.train(trainer)
        winner = verdict.winner
        trainer.decisions |= {"method": winner.method, **winner.settings, **verdict.as_json()}
        if winner.method in (GroupMixup.name, GroupDRO.name):
            trainer.trained_with = "validation" if trainer.use_groups == "val" else "training"
        return self._fit(winner, measured, trainer)

    def _standing(self, dfr: DFR, trainer: Trainer) -> Standing | None:
        """What ``dfr`` reaches on validation, by last layers that have not seen the example; None if it cannot be trained."""
        try:
            counts = counts_of(trainer, dfr.cross_fitted(trainer.scratch()))
        except UserError as error:
            trainer.decisions["not tried"] = f"dfr: {error}"
            return None
        return standing_of(dfr.name, counts, best_score(counts, "worst"), "worst")

    def _candidates(self, measured: Measured, trainer: Trainer) -> list[Candidate | DFR]:
        """All candidates, the simplest first; then the kinds take turns, so that a few trials see each of them."""
        found: list[Candidate | DFR] = [*simple_candidates(trainer)]
        umix = self._umix
        shared = {f"{UMIX.name}.{name}": getattr(umix, name) for name in ("sigma", "alpha", "mixing")}
        shared["trajectory.epochs"] = measured.longest
        weighed = [one.with_settings(shared) for one in umix.candidates(measured, trainer, umix.objective)]
        turns = zip_longest(self._with_groups(trainer), weighed)
        found += [one for turn in turns for one in turn if one is not None]
        weights = trainer.splits["train"].weight is not None
        able = [one for one in found if isinstance(one, DFR) or trainer.can_train(one.objective)]
        return [one for one in able if isinstance(one, DFR) or one.objective.takes_weights or not weights]

    def _with_groups(self, trainer: Trainer) -> list[Candidate | DFR]:
        """Candidates that train with groups: with those of all training rows, with estimates from a few, or none.

        DFR is among them where all groups are known, and those of validation are large enough to decide.
        """
        groups, source = self._groups(trainer)
        if groups is None:
            return []
        where: dict[str, Any] = {} if source == "train" else {"groups_from": source}
        found: list[Candidate | DFR] = []
        for power in reversed(_POWERS):
            mixup = GroupMixup(power=power, groups_from=source, mixing=self.mixing)
            weights = mixup.weights(trainer, groups)
            settings = {
                f"group_mixup.{key}": value for key, value in {"power": power, "mixing": self.mixing, **where}.items()
            }
            name = f"group_mixup power={power:g}" + (" groups_from=few" if where else "")
            found.append(Candidate(name, GroupMixup.name, settings, mixup.objective(weights), weights=weights))
        dro = GroupDRO(groups_from=source)
        objective, sampler = dro.recipe(groups, trainer)
        settings = {f"group_dro.{key}": value for key, value in {"step_size": dro.step_size, **where}.items()}
        name = "group_dro" + (" groups_from=few" if where else "")
        found.append(Candidate(name, GroupDRO.name, settings, objective, sampler))
        train, val = trainer.task.splits["train"], trainer.task.splits["val"]
        all_known = source == "train" and bool((val.some_groups >= 0).all())
        weighs = train.weight is not None or trainer.only_weigh  # it knows no weights of examples
        if all_known and chooses_by_groups(trainer) and not weighs:
            found.append(DFR())
        return found

    def _groups(self, trainer: Trainer) -> tuple[SoftGroups | None, GroupsFrom]:
        """The groups of the training rows as far as they may be used, and where they come from."""
        train, val = trainer.task.splits["train"], trainer.task.splits["val"]
        if trainer.use_groups == "test" or not trainer.task.groups:
            return None, "train"
        if trainer.use_groups == "train" and len(train) and bool((train.some_groups >= 0).all()):
            return known_groups(trainer), "train"
        known = [val] if trainer.use_groups == "val" else [val, train]
        if not any(bool((split.some_groups >= 0).any()) for split in known):
            return None, "few"
        try:
            return estimated_groups(trainer), "few"
        except UserError as error:
            trainer.decisions["not tried"] = f"training with groups: {error}"
            return None, "few"

    def _fit(self, winner: Candidate, measured: Measured, trainer: Trainer) -> Net:
        """The winner as a run of its own method."""
        length = winner.settings.get(f"{UMIX.name}.length", measured.longest)
        trainer.keep(uncertainty=measured.train(length))
        if winner.weights is not None:
            trainer.keep(weight=winner.weights)
        held_out = measured.held_out(length)
        return trainer.fit(winner.objective, sampler=winner.sampler, uncertainty=held_out, content=winner.name)


def said(verdict: Verdict, chosen: Standing, *, erm: float, decides: bool = True) -> dict[str, str]:
    """What was chosen and what every kind of candidate reached by the score that decided, each in a sentence.

    ``erm`` is the best average of ERM on validation: its own in the race is that of the few epochs until it dropped out.
    ``decides`` is whether candidates were judged with decisions that suit them, and not by argmax.
    """
    plain, unit = verdict.plain.get(ERM.name), verdict.unit
    first = f"best chose {chosen.name}: {score_words(chosen)} on validation by {verdict.by}"
    first += f"; {chosen.average:.1%} on average, {_against(chosen.average - erm)} ERM's best average by argmax"
    reached: list[str] = []
    for title, starts in _FAMILIES.items():
        if starts == ERM.name and not decides:
            continue
        found = [standing for standing in verdict.standings if standing.name.startswith(starts)]
        if found:
            reached.append(f"{title} {score_words(by_score(found)[0])}")
    by_argmax = "" if plain is None else f" ERM by argmax has {plain.worst:.1%} in the worst {unit} there."
    return {
        "chosen": f"{first}.",
        "others": f"By the same score the best of every kind reached: {', '.join(reached)}.{by_argmax}",
    }


def _against(difference: float) -> str:
    """A difference between two rates, in words that go before the second one."""
    points = round(100 * difference, 1)
    return f"{abs(points):.1f} points {'above' if points > 0 else 'below'}" if points else "the same as"

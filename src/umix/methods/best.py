"""The best of the others, selected on validation with what is known of the groups.

Candidates are ERM, class reweighting, all kinds of weights that UMIX can give, and what known groups allow: mixup with group
weights and GroupDRO, with groups of all training rows or with estimates from a few rows. One more learns a last layer from
validation, in case it shows minorities more often than training does: DFR with training groups, without any groups its counterpart
that balances classes. It is judged by two last layers, each on the half of validation that the other was fitted to. Every
candidate is judged with the threshold (class biases) that suits it, so "ERM + threshold" is among them. Whoever wins is trained as
an ordinary run of its method.

Where validation groups may be used, the worst of them decides. Where they may not, the worst class and the average
decide (``selection.select``).

Differs from the paper: there is none.
Differs from the released code: there is none.
"""

from dataclasses import replace
from itertools import zip_longest
from time import perf_counter
from typing import Any, ClassVar, final

from pydantic import Field

from umix.core.selection import best_score
from umix.core.words import KINDS
from umix.errors import UserError
from umix.methods.cb_last_layer import CBLastLayer
from umix.methods.dfr import DFR
from umix.methods.erm import ERM
from umix.methods.group_dro import GroupDRO
from umix.methods.group_mixup import GroupMixup
from umix.methods.method import WEIGHTS_ONLY, Method, Needs
from umix.methods.parts.soft_groups import GroupsFrom, SoftGroups, estimated_groups, known_groups
from umix.methods.parts.uncertainty_weights import Measured
from umix.methods.umix import UMIX
from umix.selection.halving import counts_of
from umix.selection.select import (
    Candidate,
    CandidateResult,
    Selection,
    by_score,
    chooses_by_groups,
    limited_cost,
    result_of,
    score_words,
    select,
    simple_candidates,
    trains_alone,
)
from umix.selection.trial import trial_context
from umix.training.context import Context
from umix.training.mixup_risk import Mixing, require_mixable
from umix.training.stage import ErmStage
from umix.training.train_result import Notes, TrainResult

_POWERS = (0.5, 0.75, 1.0)
Refit = DFR | CBLastLayer


@final
class Best(Method):
    """The method that does best on validation, with whatever is known of the groups; the default of umix run."""

    name: ClassVar[str] = "best"
    paper: ClassVar[str] = "a selection among the methods of this library"
    uses_known_groups: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    mixing_options: ClassVar[tuple[str, ...]] = ("mixing",)
    stages: ClassVar[tuple[str, ...]] = ("trajectory", "reference")

    trials: int | None = Field(None, ge=1, description="most candidates to try; none: all that fit the data")
    time: float | None = Field(
        None,
        gt=0,
        description="seconds for the whole run: trying candidates ends early enough to train the winner; none: no limit",
    )
    mixing: Mixing = Field("input", description="what is mixed: inputs, boxes of images, or pooled features")

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return self._umix.erm_stages(epochs)

    @property
    def _umix(self) -> UMIX:
        return UMIX(eta="auto", pool="auto", length="auto", mixing=self.mixing)

    def train(self, context: Context) -> TrainResult:
        require_mixable(self.mixing, context)
        measured = self._umix.measure(context)
        context = limited_cost(context, measured.best_val)
        with trial_context(context) as trial:
            return self._train(measured, context, trial)

    def _train(self, measured: Measured, context: Context, trial: Context) -> TrainResult:
        """The winner, where candidates are compared in the context ``trial``."""
        every, notes = self._candidates(measured, context, refits=not trains_alone(trial))
        tried = every[: self.trials]
        candidates = [one for one in tried if isinstance(one, Candidate)]
        if len(tried) == 1:
            only = candidates[0]
            chosen = f"Trained {only.name}, the only candidate: trials=1 allows no other."
            notes += Notes(choices={"method": only.method, **only.settings, "chosen": chosen})
            return self._fit(only, measured, context).after(notes)
        stop = self._stop(context)
        selection = select(
            context,
            candidates,
            content=self.model_dump_json(exclude={"time", "trials"}) + context.use_groups,
            stop=stop,
            trial=trial,
        )
        context, notes = selection.context, notes + Notes(warnings=selection.warnings)
        refit = next((one for one in tried if isinstance(one, Refit)), None)
        refitted = None
        if refit is not None:
            refitted, of_refit = self._refit_result(refit, selection, stop)
            notes += of_refit
        if refitted is not None:
            selection = selection.including(refitted)
        erm = measured.best_val if selection.baseline is None else selection.baseline
        summary = selection_summary(selection, erm=erm, decides=context.threshold == "tuned")
        if refit is not None and selection.results[0] is refitted:
            notes += Notes(
                {"uncertainty": measured.train(measured.longest)},
                summary | {"method": refit.name, **selection.as_json()},
            )
            if isinstance(refit, DFR):
                return replace(refit.train(context).after(notes), group_use="validation")
            return refit.fit_after(context, measured.held_out(measured.longest)).after(notes)
        winner = selection.winner
        notes += Notes(choices=summary | {"method": winner.method, **winner.settings, **selection.as_json()})
        result = self._fit(winner, measured, context).after(notes)
        if winner.method in (GroupMixup.name, GroupDRO.name):
            return replace(result, group_use="validation" if context.use_groups == "val" else "training")
        return result

    def _stop(self, context: Context) -> float | None:
        """When trying candidates must end, by ``time.perf_counter``.

        After it come the final fit and that of the ordinary model beside it; their epochs take about as long as ERM's.
        """
        if self.time is None:
            return None
        first = next(iter(context.journal.reports.values()))
        return context.progress.began + self.time - 2 * first.seconds / first.epochs * context.final_settings.epochs

    def _refit_result(
        self, refit: Refit, selection: Selection, stop: float | None
    ) -> tuple[CandidateResult | None, Notes]:
        """What ``refit`` reaches on validation, by last layers that have not seen the example; None if it cannot be trained.

        Nor is it trained after ``stop``, a time by ``time.perf_counter``.
        """
        context, rule = selection.trial, selection.rule
        if stop is not None and perf_counter() > stop:
            return None, Notes(choices={"not tried": f"{refit.name}: no time was left."})
        try:
            counts = counts_of(context, refit.cross_fitted(context.scratch()))
        except UserError as error:
            return None, Notes(choices={"not tried": f"{refit.name}: {error}"})
        return result_of(refit.name, counts, best_score(counts, rule), rule), Notes()

    def _candidates(
        self, measured: Measured, context: Context, *, refits: bool
    ) -> tuple[list[Candidate | Refit], Notes]:
        """All candidates, the simplest first; then the kinds take turns, so that a few trials see each of them.

        A new last layer needs an ERM fit of its own: ``refits`` says whether that is cheap enough.
        """
        found: list[Candidate | Refit] = [*simple_candidates(context)]
        beside, notes = self._with_groups(context)
        if refits and (refit := self._refit(context)) is not None:
            beside.append(refit)
        umix = self._umix
        shared = {f"{UMIX.name}.{name}": getattr(umix, name) for name in ("sigma", "alpha", "mixing")}
        shared["trajectory.epochs"] = measured.longest
        weighed = [one.with_settings(shared) for one in umix.candidates(measured, context, umix.objective)]
        turns = zip_longest(beside, weighed)
        found += [one for turn in turns for one in turn if one is not None]
        weights = context.splits["train"].weight is not None
        able = [one for one in found if isinstance(one, Refit) or context.can_train(one.objective)]
        return [one for one in able if isinstance(one, Refit) or one.objective.takes_weights or not weights], notes

    def _refit(self, context: Context) -> Refit | None:
        """The candidate that learns a last layer from validation, or None.

        DFR where all groups are known and those of validation are large enough to decide; where groups do not choose, its
        counterpart that balances classes.
        """
        train, val = context.task.splits["train"], context.task.splits["val"]
        if train.weight is not None or context.only_weigh:  # neither knows weights of examples
            return None
        if not chooses_by_groups(context):
            return CBLastLayer()
        known = context.use_groups == "train" and all(bool((one.some_groups >= 0).all()) for one in (train, val))
        return DFR() if known else None

    def _with_groups(self, context: Context) -> tuple[list[Candidate | Refit], Notes]:
        """Candidates that train with groups: with those of all training rows, with estimates from a few, or none."""
        groups, source, notes = self._groups(context)
        if groups is None:
            return [], notes
        where: dict[str, Any] = {} if source == "train" else {"groups_from": source}
        found: list[Candidate | Refit] = []
        for power in reversed(_POWERS):
            mixup = GroupMixup(power=power, groups_from=source, mixing=self.mixing)
            weights = mixup.weights(context, groups)
            settings = {
                f"group_mixup.{key}": value for key, value in {"power": power, "mixing": self.mixing, **where}.items()
            }
            name = f"group_mixup power={power:g}" + (" groups_from=few" if where else "")
            found.append(Candidate(name, GroupMixup.name, settings, mixup.objective(weights), weights=weights))
        dro = GroupDRO(groups_from=source)
        objective, sampler = dro.recipe(groups, context)
        settings = {f"group_dro.{key}": value for key, value in {"step_size": dro.step_size, **where}.items()}
        name = "group_dro" + (" groups_from=few" if where else "")
        found.append(Candidate(name, GroupDRO.name, settings, objective, sampler))
        return found, notes

    def _groups(self, context: Context) -> tuple[SoftGroups | None, GroupsFrom, Notes]:
        """The groups of the training rows as far as they may be used, and where they come from."""
        train, val = context.task.splits["train"], context.task.splits["val"]
        if context.use_groups == "test" or not context.task.groups:
            return None, "train", Notes()
        if context.use_groups == "train" and len(train) and bool((train.some_groups >= 0).all()):
            return known_groups(context), "train", Notes()
        known = [val] if context.use_groups == "val" else [val, train]
        if not any(bool((split.some_groups >= 0).any()) for split in known):
            return None, "few", Notes()
        try:
            groups = estimated_groups(context)
        except UserError as error:
            return None, "few", Notes(choices={"not tried": f"training with groups: {error}"})
        return groups, "few", groups.notes

    def _fit(self, winner: Candidate, measured: Measured, context: Context) -> TrainResult:
        """The winner as a run of its own method."""
        length = winner.settings.get(f"{UMIX.name}.length", measured.longest)
        per_example = {"uncertainty": measured.train(length)}
        if winner.weights is not None:
            per_example["weight"] = winner.weights
        held_out = measured.held_out(length)
        result = context.fit(winner.objective, sampler=winner.sampler, uncertainty=held_out, content=winner.name)
        return result.after(Notes(per_example))


def selection_summary(selection: Selection, *, erm: float, decides: bool = True) -> dict[str, str]:
    """What was chosen at which price, and what every kind of candidate reached by the score that decided.

    ``erm`` is the best average of ERM on validation: its own in the selection is that of the few epochs until it dropped out.
    ``decides`` is whether candidates were judged with thresholds that suit them, and not by argmax.
    """
    chosen = selection.results[0]
    first = f"Chosen of {len(selection.results)} candidates{selection.compared} on validation: {chosen.name}, {selection.reached}."
    kinds: dict[str, str] = {}
    for result in by_score(selection.results):
        method = result.name.split(" ")[0]
        if method != ERM.name or decides:
            threshold = " + threshold" if method == ERM.name else ""
            kinds.setdefault(KINDS[method] + threshold, score_words(result))
    reached = ", ".join(f"{kind} {score}" for kind, score in kinds.items())
    return {
        "chosen": f"{first} {_price(chosen.average - erm)}",
        "others": f"The best of every kind by the same score: {reached}.",
    }


def _price(difference: float) -> str:
    """What a choice costs on average, in a sentence."""
    points = round(100 * difference, 1)
    if points < 0:
        return f"Price: average {-points:.1f} points below an ordinary model's."
    return f"No price: average {points:.1f} points above an ordinary model's." if points else "No price: same average."

"""A run in Weights & Biases."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hipporag_torch.errors import BackendError, ConfigError, InputError
from hipporag_torch.evaluation.files import METRICS, PREDICTIONS
from hipporag_torch.tracking.protocol import FinishedRun, Picture, RunStart
from hipporag_torch.tracking.tables import (
    RunTable,
    plain,
    predictions_table,
    recall_table,
    seconds_table,
    usage_table,
)
from hipporag_torch.tracking.wandb_mode import MODES, Mode, chosen_mode, has_key

if TYPE_CHECKING:
    import wandb

# What is kept as the run's artifact, of what is there.
_KEPT = (METRICS, PREDICTIONS, "config.yaml", "environment.json")

_SETTINGS: dict[str, Any] = {
    "silent": True,
    "console": "off",
    # A run of its own, although others may be going on in this process.
    "reinit": "create_new",
    # Metadata holds the command line; what of it is worth knowing is in the config.
    "x_disable_meta": True,
    "disable_git": True,
    "save_code": False,
    "x_save_requirements": False,
}


class WandbTracker:
    """Records a run in W&B, or in a folder that `wandb sync` uploads, `wandb/offline-run-…` in the run's own.

    Its config is the run's, with what is known beside it under `facts`. Each step stands under `progress/…`.
    The summary holds what metrics.json holds, under the same names, and `machine`. Then there are
    `tables/…` (predictions, recall, seconds, usage), `charts/…` of the middle two, `pictures/…`, and an
    artifact of the run's files.

    W&B never asks for a key and prints nothing. The command line is not recorded, since a secret may stand
    in it, nor the user's name. Each run is W&B's own, whatever else runs in the process.

    project, entity: where in W&B. group, name: instead of the run's own. tags: any texts.
    mode: `auto` is online if there is an API key and W&B's own settings say nothing else, else offline.
    predictions: how many questions the table of predictions shows, the first ones; None: all, 0: no table.

    Raises `ConfigError` where the package is not installed or an option is out of range.
    """

    def __init__(
        self,
        *,
        project: str = "hipporag-torch",
        entity: str | None = None,
        group: str | None = None,
        name: str | None = None,
        tags: Sequence[str] = (),
        mode: Mode = "auto",
        predictions: int | None = None,
    ) -> None:
        if find_spec("wandb") is None:
            raise ConfigError(
                "tracker=wandb needs the package wandb, which is not installed; "
                "pip install 'hipporag-torch[wandb]', or choose tracker=files"
            )
        if not project:
            raise ConfigError("tracker.project must not be empty; give it as tracker.project=NAME")
        if isinstance(tags, str) or not all(isinstance(tag, str) and tag for tag in tags):
            raise ConfigError(f"tracker.tags must be a list of texts, got {tags!r:.80}")
        if mode not in MODES:
            raise ConfigError(f"tracker.mode must be one of {', '.join(MODES)}, got {mode!r:.80}")
        if predictions is not None and (type(predictions) is not int or predictions < 0):
            raise ConfigError(
                f"tracker.predictions must be at least 0, or null for all, got {predictions!r:.80}"
            )
        self._project, self._entity, self._group, self._name = project, entity, group, name
        self._tags, self._predictions = tuple(tags), predictions
        self._mode: Mode = mode
        self._run: wandb.Run | None = None
        self._directory = Path()
        self._note = ""

    @property
    def note(self) -> str:
        """Where the run is, and of an offline one how it is uploaded; stays after its end."""
        return self._note

    def begin(self, run: RunStart) -> None:
        """Raises `ConfigError` for online without a usable key, `BackendError` if W&B is not reached."""
        import wandb

        with _clean_errors():
            # Silent also in what it says before a run has settings of its own.
            session = wandb.setup(wandb.Settings(silent=True)).settings
        key = has_key(session.base_url, os.environ) or bool(session.api_key)
        mode, why = chosen_mode(self._mode, stated=session.mode, key=key)
        run.directory.mkdir(parents=True, exist_ok=True)
        self._directory = run.directory
        with _clean_errors():
            self._run = wandb.init(
                project=self._project,
                entity=self._entity,
                group=self._group or run.group,
                name=self._name or run.name,
                tags=self._tags,
                job_type="evaluate",
                dir=run.directory,
                config={**run.config, "facts": dict(run.facts)},
                settings=wandb.Settings(mode=mode, **_SETTINGS),
            )
        self._run.define_metric("progress/questions", summary="none")
        self._run.define_metric("progress/*", step_metric="progress/questions", summary="none")
        place = Path(self._run.dir).parent
        self._note = (
            f"W&B: {self._run.url}, {why}"
            if mode == "online"
            else f"W&B: offline, {why}. Upload the run with: wandb sync {place}"
        )

    def progress(self, questions: int, values: Mapping[str, float]) -> None:
        named = {f"progress/{name}": value for name, value in values.items()}
        self._going_on().log({"progress/questions": questions, **named})

    def finish(self, run: FinishedRun) -> None:
        going_on, evaluation = self._going_on(), run.evaluation
        going_on.log({**self._tables(run), **self._pictures(run.pictures)})
        # After the tables, so that these names are what metrics.json says.
        going_on.summary.update(
            {
                **evaluation.metrics,
                "routes": evaluation.routes,
                "gold": asdict(evaluation.gold),
                **run.extra,
                "machine": dict(run.machine),
            }
        )
        self._keep_files(going_on)
        self._end(exit_code=0)

    def fail(self, reason: str) -> None:
        """The run is marked as failed; `failed` in its summary says why."""
        if self._run is not None:
            self._run.summary["failed"] = reason
            self._end(exit_code=1)

    def _going_on(self) -> "wandb.Run":
        if self._run is None:
            raise InputError("no run is going on; call begin first")
        return self._run

    def _end(self, *, exit_code: int) -> None:
        going_on = self._going_on()
        # First: what fails here is not failed again.
        self._run = None
        going_on.finish(exit_code=exit_code)

    def _tables(self, run: FinishedRun) -> dict[str, Any]:
        import wandb

        recall = recall_table(run.evaluation.metrics)
        logged: dict[str, Any] = {}
        if self._predictions != 0:
            shown = predictions_table(run.evaluation.rows[: self._predictions])
            logged["tables/predictions"] = _table(shown)
        if recall.rows:
            values = plain(recall)
            kinds = list(recall.columns[1:])
            logged["tables/recall"] = _table(recall)
            logged["charts/recall"] = wandb.plot.line_series(
                xs=values["k"],
                ys=[values[kind] for kind in kinds],
                keys=kinds,
                title="Recall over k",
                xname="k",
            )
        if seconds := run.extra.get("seconds"):
            logged["tables/seconds"] = table = _table(seconds_table(seconds))
            logged["charts/seconds"] = wandb.plot.bar(table, "stage", "seconds", title="Seconds by stage")
        if usage := run.extra.get("usage"):
            logged["tables/usage"] = _table(usage_table(usage, run.extra.get("money", {})))
        return logged

    def _pictures(self, pictures: Sequence[Picture]) -> dict[str, Any]:
        """Each under its file's name in the run's folder: in one list they would have to be of one size."""
        import wandb

        logged: dict[str, Any] = {}
        for picture in pictures:
            name = picture.png.relative_to(self._directory).with_suffix("").as_posix()
            logged[f"pictures/{name}"] = wandb.Image(str(picture.png), caption=picture.caption)
            if picture.html is not None:
                # As it is: the page has its own style.
                logged[f"pages/{name}"] = wandb.Html(str(picture.html), inject=False)
        return logged

    def _keep_files(self, going_on: "wandb.Run") -> None:
        import wandb

        artifact = wandb.Artifact(f"run-{going_on.id}", type="evaluation")
        for name in _KEPT:
            path = self._directory / name
            if path.is_file():
                # Immutable: taken from the run's folder, not copied into the user's data folder first.
                artifact.add_file(str(path.resolve()), name=name, policy="immutable")
        going_on.log_artifact(artifact)


@contextmanager
def _clean_errors() -> Iterator[None]:
    """W&B's errors as ours."""
    from wandb.errors import AuthenticationError, CommError, Error

    try:
        yield
    except Error as error:
        if isinstance(error, CommError) and not isinstance(error, AuthenticationError):
            raise BackendError(
                f"W&B's server did not take the run: {error}; check the network, or choose "
                "tracker.mode=offline"
            ) from error
        raise ConfigError(
            f"W&B could not begin the run: {error}; change that, or choose tracker.mode=offline"
        ) from error


def _table(table: RunTable) -> "wandb.Table":
    import wandb

    # A question may lack what others have, and an empty list has no type.
    return wandb.Table(
        columns=list(table.columns), data=[list(row) for row in table.rows], allow_mixed_types=True
    )

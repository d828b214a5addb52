"""Where a run's course and outcome are recorded: plain files always, Weights & Biases on request."""

from hipporag_torch.tracking.files import FilesTracker
from hipporag_torch.tracking.protocol import FinishedRun, Picture, RunStart, Tracker, tracked
from hipporag_torch.tracking.running import RunningMeans
from hipporag_torch.tracking.several import SeveralTrackers, files_and_wandb

__all__ = [
    "FilesTracker",
    "FinishedRun",
    "Picture",
    "RunStart",
    "RunningMeans",
    "SeveralTrackers",
    "Tracker",
    "files_and_wandb",
    "tracked",
]

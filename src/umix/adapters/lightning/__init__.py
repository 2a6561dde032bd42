"""UMIX in one's own LightningModule: a callback records the trajectory, a mixin trains the second stage.

    recorder = TrajectoryCallback()
    Trainer(max_epochs=10, callbacks=[recorder]).fit(Classifier(), loader)

    class SecondStage(TrainsByUMIX, Classifier): ...

    model = SecondStage().with_weights(recorder.trajectory.weights(eta=3), sigma=0.5)
    Trainer(max_epochs=20).fit(model, loader)

The loader reads an ``IndexedDataset``, so that a batch is (x, y, index), or a dict with the entry "index".
"""

from umix.adapters.lightning.second_stage import TrainsByUMIX
from umix.adapters.lightning.trajectory_callback import TrajectoryCallback

__all__ = ["TrainsByUMIX", "TrajectoryCallback"]

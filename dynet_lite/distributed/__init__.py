"""Training on several processes, on one machine or many: synchronous data parallelism over MPI.

    world = dy.distributed.init()                  # the processes that mpiexec started; or this one alone
    trainer = dy.distributed.Trainer(dy.AdamTrainer(model))
    for batch in batches:                          # the same mini-batches, in the same order, in every process
        dy.renew_cg()
        mine = world.share(batch)                  # this process's part
        if mine:
            loss = dy.esum([loss_of(x) for x in mine]) * (1 / len(batch))
            loss.backward()
        trainer.update()                           # gradients are added up, then every process makes the same update

``mpiexec -n 4 python program.py`` runs it on four. Without mpiexec nothing is different from a program that has none of
this, and mpi4py is not imported. docs/distributed.md tells the rest.
"""

from __future__ import annotations

from .dealing import deal
from .trainer import Trainer
from .world import Alone, NotAlike, RankFailed, World, current, init, launched

__all__ = ["Alone", "NotAlike", "RankFailed", "Trainer", "World", "current", "deal", "init", "launched"]

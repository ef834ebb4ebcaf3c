"""Stands in for LangGraph, which Debian does not have: the little of it that skein.langgraph imports."""

from __future__ import annotations

from typing import Any, NamedTuple

WRITES_IDX_MAP = {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4}


class CheckpointTuple(NamedTuple):
    config: dict[str, Any]
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    parent_config: dict[str, Any] | None = None
    pending_writes: list[tuple[str, str, Any]] | None = None


class BaseCheckpointSaver:
    def __init__(self, *, serde: Any = None) -> None:
        self.serde = serde


def get_checkpoint_metadata(config: Any, metadata: Any) -> dict[str, Any]:
    return dict(metadata)

"""Stands in for ADK, which Debian does not have: the little of it that skein.adk needs."""

from __future__ import annotations

import json
from typing import Any


class Thing:
    """An object whose fields are read by name, and are None where they were not set."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and plain(self) == plain(other)


def plain(value: Any) -> Any:
    if isinstance(value, Thing):
        return {name: plain(one) for name, one in value.__dict__.items() if one is not None}
    return [plain(one) for one in value] if isinstance(value, list) else value


def thing(value: Any, raw: bool = False) -> Any:
    if isinstance(value, dict) and not raw:
        return Thing(**{name: thing(one, name == "state_delta") for name, one in value.items()})
    return [thing(one) for one in value] if isinstance(value, list) else value


class Event(Thing):
    def model_dump_json(self, exclude_none: bool = False) -> str:
        return json.dumps(plain(self))

    @classmethod
    def model_validate_json(cls, text: str) -> Event:
        return cls(**thing(json.loads(text)).__dict__)

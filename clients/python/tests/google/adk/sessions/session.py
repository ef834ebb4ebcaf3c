from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Session:
    id: str
    app_name: str
    user_id: str
    state: dict[str, Any] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)
    last_update_time: float = 0.0

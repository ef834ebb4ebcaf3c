from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .session import Session


@dataclass
class GetSessionConfig:
    num_recent_events: int | None = None
    after_timestamp: float | None = None


@dataclass
class ListSessionsResponse:
    sessions: list[Session]
    next_page_token: str | None = None


class BaseSessionService:
    async def append_event(self, session: Session, event: Any) -> Any:
        if event.partial:
            return event
        if event.actions and event.actions.state_delta:
            session.state.update({name: value for name, value in event.actions.state_delta.items() if not name.startswith("temp:")})
        session.events.append(event)
        return event

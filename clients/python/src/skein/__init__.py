"""The client of Skein: typed commands, queries, events and streams over HTTP.

``Skein`` is for threads, ``skein.aio.Skein`` the same for asyncio. Neither needs a package.
"""

from ._wire import Chunk, Done, Event, Gap, Options, SkeinError, Started, TenantEvent
from .client import Skein, Thread

__all__ = ["Chunk", "Done", "Event", "Gap", "Options", "Skein", "SkeinError", "Started", "TenantEvent", "Thread"]

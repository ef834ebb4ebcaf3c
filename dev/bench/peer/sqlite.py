# Stores commits in SQLite, one transaction each, as dev/bench/peer/sqlite.go says on standard
# input, and tells on standard output how long each took. Python's module binds parameters, so that
# no SQL is parsed a commit.
import json, sqlite3, sys, time

work = json.load(sys.stdin)
turn, threads = work["turn"], work["threads"]
events = [(e["kind"], e["body"].encode()) for e in turn["events"]]
documents = [(d["kind"], d["key"], d["body"].encode()) for d in turn["documents"]]

db = sqlite3.connect(work["file"], isolation_level=None)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE events (thread TEXT, version INTEGER, type TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (thread, version)) WITHOUT ROWID")
db.execute("CREATE TABLE documents (model TEXT, key TEXT, body BLOB NOT NULL, PRIMARY KEY (model, key)) WITHOUT ROWID")

nanos, n, begun = [], 0, time.monotonic_ns()
used = time.process_time_ns()
while time.monotonic_ns() - begun < work["millis"] * 1_000_000:
    thread, nonce, at = threads[n % len(threads)], "%032x" % n, time.monotonic_ns()
    first = 1 + n // len(threads) * len(events)
    db.execute("BEGIN IMMEDIATE")
    db.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", [(thread, first + i, kind, body) for i, (kind, body) in enumerate(events)])
    db.executemany(
        "INSERT INTO documents VALUES (?, ?, ?) ON CONFLICT (model, key) DO UPDATE SET body = excluded.body",
        [(model, key.replace(turn["thread"], thread).replace(turn["nonce"], nonce), body) for model, key, body in documents])
    db.execute("COMMIT")
    nanos.append(time.monotonic_ns() - at)
    n += 1
    time.sleep(max(0, at / 1e9 + work.get("every", 0) / 1e3 - time.monotonic()))
elapsed = time.monotonic_ns() - begun
json.dump({
    "nanos": nanos, "elapsed": elapsed, "processor": time.process_time_ns() - used, "version": sqlite3.sqlite_version,
    "stored": db.execute("SELECT count(*) FROM events").fetchone()[0],
    "documents": db.execute("SELECT count(*) FROM documents").fetchone()[0],
}, sys.stdout)

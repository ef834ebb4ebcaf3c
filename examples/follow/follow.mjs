// Keeps tables of Postgres in step with the threads of a tenant, over HTTP.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const skein = process.env.SKEIN_URL ?? 'http://127.0.0.1:8420';
const consumer = 'tables-node'; // use one for each set of tables
const db = new pg.Client({ connectionString: process.env.DATABASE_URL });
await db.connect();

async function query(name, data) {
  const headers = { 'Content-Type': 'application/json' };
  if (process.env.SKEIN_KEY) headers.Authorization = `Bearer ${process.env.SKEIN_KEY}`;
  const answer = await fetch(`${skein}/api/queries/${name}`, { method: 'POST', headers, body: JSON.stringify(data) });
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.error.message), body.error, { status: answer.status });
  return body;
}

async function transaction(work) {
  await db.query('BEGIN');
  try {
    await work();
    await db.query('COMMIT');
  } catch (err) {
    await db.query('ROLLBACK');
    throw err;
  }
}

// begin returns where the consumer begins: at the commit after the snapshot.
async function begin() {
  const { rows: [at] } = await db.query('SELECT start, log FROM position');
  if (at) return { fromSeq: Number(at.start), log: at.log };
  const end = await query('history.get', {});
  await transaction(async () => {
    await db.query('INSERT INTO position (start, seq, log) VALUES ($1, $2, $3)', [end.lastSeq + 1, end.lastSeq, end.log]);
    for (const archived of [false, true]) {
      let cursor;
      do {
        const page = await query('thread.list', { archived, minSeq: end.lastSeq, cursor });
        for (const thread of page.threads) await put(thread);
        cursor = page.nextCursor;
      } while (cursor);
    }
  });
  return { fromSeq: end.lastSeq + 1, log: end.log };
}

// put writes the row of a thread, unless the table has a later version of it.
async function put(thread) {
  await db.query(`INSERT INTO threads (id, title, status, items, version) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (id) DO UPDATE SET title = excluded.title, status = excluded.status, items = excluded.items, version = excluded.version
    WHERE threads.version < excluded.version`, [thread.id, thread.title ?? '', thread.status, thread.items ?? 0, thread.version]);
}

// apply applies entries in one transaction. What was applied before is skipped.
async function apply(entries) {
  await transaction(async () => {
    const changed = new Map(); // versions of threads
    for (const { seq, event } of entries) {
      if (!event) throw new Error(`commit ${seq} of the log cannot be read`);
      const { rowCount } = await db.query(`INSERT INTO changes (event, seq, thread, version, type, at) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (event) DO NOTHING`, [event.id, seq, event.threadid, event.threadversion, event.type, event.time]);
      if (rowCount > 0 && event.threadid.startsWith('T-')) changed.set(event.threadid, event.threadversion);
      await db.query('UPDATE position SET seq = greatest(seq, $1)', [seq]);
    }
    for (const [threadId, minVersion] of changed) {
      try {
        await put(await query('thread.get', { threadId, minVersion }));
      } catch (err) {
        if (err.code !== 'not_found') throw err;
        await db.query('DELETE FROM threads WHERE id = $1', [threadId]);
      }
    }
  });
}

// readLog applies what the log has after what is applied. Its first commit may be applied in part.
async function readLog() {
  const { rows: [at] } = await db.query('SELECT seq, log FROM position');
  let page = { nextSeq: Math.max(Number(at.seq), 1) };
  do {
    page = await query('history.list', { fromSeq: page.nextSeq, afterVersion: page.nextVersion, log: at.log });
    if (page.entries.length > 0) await apply(page.entries);
  } while (page.nextSeq);
}

// clear empties the tables, so that they begin with a new snapshot.
async function clear() {
  await query('consumer.delete', { name: consumer });
  await db.query('TRUNCATE threads, changes, position');
}

if (process.argv.includes('--rebuild')) await clear();
for (;;) {
  try {
    await query('consumer.create', { name: consumer, ...await begin() });
    for (;;) {
      const batch = await query('consumer.next', { name: consumer, limit: 100, waitMs: 10000 });
      if (!batch.token) continue;
      if (batch.gap) await readLog();
      await apply(batch.entries);
      await query('consumer.settle', { name: consumer, token: batch.token, as: 'done' });
    }
  } catch (err) {
    if (err.code === 'position_ahead') await clear(); // the log was restored: its positions are other ones
    else if (err instanceof TypeError || err.status >= 500 || err.status === 429) await sleep(1000); // Skein is away for a moment
    else throw err;
  }
}

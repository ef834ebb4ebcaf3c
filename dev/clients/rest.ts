// A client that openapi-typescript writes from /api/openapi.json: its types are checked by tsc, its
// calls are made against a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import createClient from 'openapi-fetch';

import type { components, paths } from './api';

const baseUrl = process.env.SKEIN_URL;
assert.ok(baseUrl, 'SKEIN_URL names the server');
const api = createClient<paths>({ baseUrl });

test('threads are resources', async () => {
  const made = await api.POST('/api/threads', { body: { title: 'From TypeScript', key: 'ts/1' } });
  assert.equal(made.response.status, 201);
  const reply: components['schemas']['Reply'] = made.data!;
  const thread = reply.threadId!;
  const shown = await api.GET('/api/threads/{thread}', { params: { path: { thread }, header: { 'Skein-Min-Seq': String(reply.seq) } } });
  const doc: components['schemas']['Thread'] = shown.data!;
  assert.equal(doc.title, 'From TypeScript');
  const changed = await api.PATCH('/api/threads/{thread}', {
    params: { path: { thread }, header: { 'If-Match': '"1"' } }, body: { title: 'Too late' },
  });
  assert.equal(changed.response.status, 412);
  assert.equal(changed.error!.error.code, 'version_conflict');
});

test('items are added and listed', async () => {
  const { data: made } = await api.POST('/api/threads', { body: {} });
  const thread = made!.threadId!;
  const added = await api.POST('/api/threads/{thread}/items', {
    params: { path: { thread }, header: { 'Idempotency-Key': 'ts-item-1' } },
    body: { item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hello' }] } },
  });
  assert.equal(added.response.status, 201);
  const list = await api.GET('/api/threads/{thread}/items', {
    params: { path: { thread }, query: { limit: 10, minSeq: added.data!.seq } },
  });
  assert.equal(list.data!.items.length, 1);
  assert.equal(list.data!.items[0].id, added.data!.result!.itemId);
});

test('commands and queries have paths of their own', async () => {
  const made = await api.POST('/api/commands/thread.create', { body: { commandId: 'ts-create-1', data: { title: 'A command' } } });
  assert.ok(made.data!.threadId);
  const list = await api.POST('/api/queries/thread.list', { body: { limit: 5, minSeq: made.data!.seq } });
  assert.ok(list.data!.threads.some((t) => t.id === made.data!.threadId));
});

test('refusals are typed', async () => {
  const missing = await api.GET('/api/threads/{thread}', { params: { path: { thread: 'key:nothing' } } });
  assert.equal(missing.data, undefined);
  assert.equal(missing.error!.error.type, 'not_found');
  const param: string = missing.error!.error.param;
  assert.equal(typeof param, 'string');
});

test('a ticket stands for the caller', async () => {
  const made = await api.POST('/api/tickets');
  assert.equal(made.response.status, 201);
  assert.ok(made.data!.ticket && Date.parse(made.data!.expiresAt) > Date.now());
});

test('what the document does not have does not compile', () => {
  // @ts-expect-error: no such path
  void (() => api.GET('/api/thread', {}));
  // @ts-expect-error: limit is a number
  void (() => api.GET('/api/threads', { params: { query: { limit: 'ten' } } }));
  // @ts-expect-error: an item needs a type
  void (() => api.POST('/api/threads/{thread}/items', { params: { path: { thread: 'T-1' } }, body: { item: { role: 'user' } } }));
});

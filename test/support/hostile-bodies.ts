// hostile-bodies.ts: answers with the status 200 and a wrong body.

import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { page, good, body, answered, unreadable } from './hostile-answer.ts'
import type { HostileAnswer, Fields } from './hostile-answer.ts'
import { acceptAll } from './scripted-service.ts'
import type { Received, Reply } from './scripted-service.ts'

/** A valid answer with a changed text. */
const goodText = (change: (text: string) => string | Buffer, headers: Record<string, string> = {}) =>
  ((received) => {
    const reply = good(() => ({}))(received)
    const body = typeof reply === 'object' && 'body' in reply ? JSON.stringify(reply.body) : ''
    return { status: 200, body: change(body), headers }
  }) satisfies HostileAnswer['reply']

const failFirst =
  (record: Fields) =>
  ({ payloadIds: [first = '', ...rest] }: Received): Reply => ({
    status: 200,
    body: { requestId: 'r', accepted: rest, failed: [{ payloadId: first, ...record }] },
  })

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

const foreign = (index: number) => `99999999-9999-8999-a999-${String(index).padStart(12, '0')}`

const firstRetried = ['retried', 'delivered', 'delivered'] as const

const roomy = { responseBytesMax: 16 * 1024 ** 2 }

const lists: HostileAnswer[] = [
  {
    name: 'nothing wrong',
    reply: acceptAll,
    outcome: { ...answered, accepted: 'all' },
    becomes: 'delivered',
  },
  {
    name: 'the ids in another order',
    reply: good((_, ids) => ({ accepted: ids.toReversed() })),
    outcome: { ...answered, deviations: [] },
    becomes: 'delivered',
  },
  {
    name: 'the ids in upper case',
    reply: good((_, ids) => ({ accepted: ids.map((id) => id.toUpperCase()) })),
    outcome: answered,
    becomes: 'delivered',
  },
  {
    name: 'each id twice',
    reply: good((_, ids) => ({ accepted: [...ids, ...ids] })),
    outcome: answered,
    becomes: 'delivered',
    deviation: /summary.accepted is 3, but the lists contain 6/,
  },
  {
    name: 'a payload in both lists: failed wins',
    reply: good((_, ids) => ({ failed: [{ payloadId: ids[0], errorType: 'Internal' }] })),
    outcome: answered,
    becomes: firstRetried,
    deviation: /payloads in both lists: 1/,
  },
  {
    name: 'all in both lists',
    reply: good((_, ids) => ({ failed: ids.map((payloadId) => ({ payloadId, errorType: 'Internal' })) })),
    outcome: answered,
    becomes: 'retried',
    deviation: /payloads in both lists: 3/,
  },
  {
    name: 'foreign ids beside ours',
    reply: good((_, ids) => ({ accepted: [...ids, foreign(1)], failed: [{ payloadId: foreign(2) }] })),
    outcome: answered,
    becomes: 'delivered',
    deviation: /payloadIds that are not in this batch: 2/,
  },
  {
    name: 'the answer to another batch',
    reply: good(() => ({ accepted: [foreign(1), foreign(2), foreign(3)] })),
    outcome: answered,
    becomes: 'again',
    deviation: /payloads in neither list: 3/,
  },
  {
    name: 'a payload in neither list',
    reply: good((_, ids) => ({ accepted: ids.slice(1) })),
    outcome: answered,
    becomes: 'again',
    deviation: /payloads in neither list: 1/,
  },
  {
    name: 'a payload in neither list, twice',
    reply: good((_, ids) => ({ accepted: ids.slice(1) })),
    times: 2,
    outcome: answered,
    becomes: ['again, retried', 'again', 'again'],
  },
  {
    name: 'two empty lists',
    reply: good(() => ({ accepted: [] })),
    outcome: answered,
    becomes: 'again',
  },
  {
    name: 'two empty lists, twice',
    reply: good(() => ({ accepted: [] })),
    times: 2,
    outcome: answered,
    becomes: 'again, again',
  },
  {
    name: 'ids with spaces around',
    reply: good((_, ids) => ({ accepted: ids.map((id) => ` ${id} `) })),
    outcome: answered,
    becomes: 'again',
  },
  {
    name: 'ids that are numbers, nulls and objects',
    reply: good(() => ({ accepted: [7, null, { payloadId: 'x' }, true, []] })),
    outcome: { ...answered, accepted: [] },
    becomes: 'again',
    deviation: /entries of "accepted" that are not strings: 5/,
  },
  {
    name: 'failed records of rubbish beside a payload that is missing',
    reply: good((_, ids) => ({ accepted: ids.slice(1), failed: [null, 4, 'x', [], { payloadId: 9 }] })),
    outcome: answered,
    becomes: 'again',
    deviation: /entries of "failed" without a payloadId: 5/,
  },
  {
    name: 'a list that is an object',
    reply: good((_, ids) => ({ accepted: Object.fromEntries(ids.entries()) })),
    outcome: answered,
    becomes: 'again',
    deviation: /"accepted" is not a list/,
  },
  {
    name: 'both lists null',
    reply: good(() => ({ accepted: null, failed: null })),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: 'both lists text',
    reply: good(() => ({ accepted: 'all', failed: 'none' })),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: 'keys in the wrong case',
    reply: good(({ accepted }) => ({ Accepted: accepted, accepted: undefined, failed: undefined })),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: 'a key twice: the last one counts',
    reply: goodText((text) => text.replace('"accepted"', '"accepted":[],"accepted"')),
    outcome: { ...answered, accepted: 'all' },
    becomes: 'delivered',
  },
  {
    name: '50,000 failed records of others',
    reply: good(() => ({ failed: Array.from({ length: 50_000 }, (_, i) => ({ payloadId: foreign(i) })) })),
    outcome: answered,
    becomes: 'delivered',
    deviation: /payloadIds that are not in this batch: 50000/,
    provider: roomy,
  },
]

const members: HostileAnswer[] = [
  {
    name: 'a wrong summary',
    reply: good(() => ({ summary: { total: 9, accepted: -1, failed: '0' } })),
    outcome: { ...answered, accepted: 'all' },
    becomes: 'delivered',
    deviation: /summary.total is 9, but the lists contain 3/,
  },
  {
    name: 'a summary that is a list',
    reply: good(() => ({ summary: [] })),
    outcome: answered,
    becomes: 'delivered',
    deviation: /"summary" is missing/,
  },
  {
    name: 'a summary of deep nesting',
    reply: goodText((text) => text.replace('"total":3', `"total":${nested(20_000)}`)),
    outcome: { ...answered, accepted: 'all' },
    becomes: 'delivered',
    deviation: /summary.total is a list, but the lists contain 3/,
  },
  {
    name: 'responseCode 500 beside the status 200',
    reply: good(() => ({ responseCode: 500 })),
    outcome: answered,
    becomes: 'delivered',
    deviation: /responseCode is 500, but the status is 200/,
  },
  {
    name: 'responseCode of deep nesting',
    reply: goodText((text) => text.replace('"responseCode":200', `"responseCode":${nested(20_000)}`)),
    outcome: { ...answered, accepted: 'all' },
    becomes: 'delivered',
    deviation: /responseCode is a list/,
  },
  {
    name: 'responseCode 500 and no lists',
    reply: body(200, '{"responseCode":500,"message":"Internal error"}'),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: 'an unknown errorType',
    reply: failFirst({ errorType: 'Überlauf', errorMessage: 'x' }),
    outcome: { ...answered, failed: [expect.objectContaining({ errorType: 'Überlauf' })] },
    becomes: firstRetried,
  },
  {
    name: 'an errorType that is a number',
    reply: failFirst({ errorType: 7, errorMessage: null, validationErrorDetails: 'x' }),
    outcome: { ...answered, failed: [expect.objectContaining({ errorType: 'Unknown', errorMessage: '' })] },
    becomes: firstRetried,
  },
  {
    name: 'an errorType named like a part of JavaScript',
    reply: failFirst({ errorType: 'constructor' }),
    outcome: answered,
    becomes: firstRetried,
  },
  {
    name: 'an errorType of 20,000 letters with control characters',
    reply: failFirst({ errorType: `\u001b[2J${'x'.repeat(20_000)}`, errorMessage: 'y'.repeat(20_000) }),
    outcome: {
      ...answered,
      failed: [expect.objectContaining({ errorType: expect.stringMatching(/^\[2Jx{60}…$/) })],
    },
    becomes: firstRetried,
  },
  {
    name: 'a failed record with 20,000 details',
    reply: failFirst({
      errorType: 'Internal',
      validationErrorDetails: Array.from({ length: 20_000 }, () => ({})),
    }),
    outcome: {
      ...answered,
      failed: [expect.objectContaining({ validationErrorDetails: expect.objectContaining({ length: 50 }) })],
    },
    becomes: firstRetried,
    provider: roomy,
  },
  {
    name: 'a requestId of 20,000 letters',
    reply: good(() => ({ requestId: 'r'.repeat(20_000) })),
    outcome: { ...answered, requestId: expect.stringMatching(/^r{127}…$/) },
    becomes: 'delivered',
  },
  {
    name: 'a requestId that is an object',
    reply: good(() => ({ requestId: { id: 1 } })),
    outcome: { ...answered, requestId: null },
    becomes: 'delivered',
  },
  {
    name: '__proto__ with lists of its own',
    reply: goodText((text) => `{"__proto__":{"failed":[{"payloadId":"x"}]},${text.slice(1)}`),
    outcome: { ...answered, accepted: 'all' },
    becomes: 'delivered',
  },
]

const bodies: HostileAnswer[] = [
  { name: '200 with HTML', reply: body(200, page), outcome: unreadable, becomes: 'again' },
  { name: '200 with nothing', reply: body(200, ''), outcome: unreadable, becomes: 'again' },
  { name: '200 with null', reply: body(200, 'null'), outcome: unreadable, becomes: 'again' },
  { name: '200 with a number', reply: body(200, '200'), outcome: unreadable, becomes: 'again' },
  { name: '200 with a list', reply: body(200, '[{"accepted":[]}]'), outcome: unreadable, becomes: 'again' },
  { name: '200 with "OK"', reply: body(200, '"OK"'), outcome: unreadable, becomes: 'again' },
  {
    name: '200 with half of it',
    reply: goodText((text) => text.slice(0, text.length / 2)),
    outcome: { ...answered, complete: false, tooLarge: false },
    becomes: 'again',
  },
  {
    name: '200 with two answers in one',
    reply: goodText((text) => text + text),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: '200 with NaN',
    reply: goodText((text) => text.replace('200', 'NaN')),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: '200 in text/html that is JSON',
    reply: goodText((text) => text, { 'content-type': 'text/html' }),
    outcome: { ...answered, accepted: 'all' },
    becomes: 'delivered',
  },
  {
    name: '200 in UTF-16',
    reply: goodText((text) => Buffer.from(text, 'utf16le')),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: 'invalid UTF-8 in a requestId',
    reply: goodText((text) => Buffer.from(text.replace('request-1', '\xff\xfe'), 'latin1')),
    outcome: { ...answered, accepted: 'all' },
    becomes: 'delivered',
  },
  {
    name: 'invalid UTF-8 in an id',
    reply: goodText((text) => Buffer.from(text.replace('"accepted":["', '"accepted":["\xff'), 'latin1')),
    outcome: answered,
    becomes: 'again',
  },
  {
    name: 'brackets without end',
    reply: body(200, '['.repeat(60_000)),
    outcome: unreadable,
    becomes: 'again',
  },
  { name: 'deep nesting', reply: body(200, nested(30_000)), outcome: unreadable, becomes: 'again' },
  {
    name: 'compressed, which was not asked for',
    reply: goodText((text) => gzipSync(text), { 'content-encoding': 'gzip' }),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: 'a compressed bomb',
    reply: body(200, gzipSync(Buffer.alloc(10_000_000)), { 'content-encoding': 'gzip' }),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: 'compressed, and not said so',
    reply: goodText((text) => gzipSync(text)),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: '10 MB of spaces',
    reply: body(200, ' '.repeat(10_000_000)),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: '10 MB of a good answer',
    reply: goodText((text) => text + ' '.repeat(10_000_000)),
    outcome: { ...answered, complete: false, tooLarge: true },
    deviation: /larger than delivery.max_response_bytes/,
    becomes: 'delivered',
  },
]

export const hostileBodies: readonly HostileAnswer[] = [...lists, ...members, ...bodies]

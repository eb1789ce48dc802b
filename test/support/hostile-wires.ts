// hostile-wires.ts: connections that end, hang or send very slowly, statuses that the specification does not
// show, and answers to a single payload.

import type { Socket } from 'node:net'
import { expect } from 'vitest'
import { page, good, body, answered, unreadable } from './hostile-answer.ts'
import type { HostileAnswer } from './hostile-answer.ts'
import { acceptAll, breakdown } from './scripted-service.ts'
import type { Reply } from './scripted-service.ts'

const raw = (does: (socket: Socket) => void) => (): Reply => ({ raw: does })

const say = (text: string) => raw((socket) => void socket.end(text))

/** Writes until the other side closes. */
const pour = (head: string, part: string | Buffer, everyMs: number) =>
  raw((socket) => {
    socket.on('error', () => undefined)
    socket.write(head)
    const timer = setInterval(() => (socket.destroyed ? clearInterval(timer) : socket.write(part)), everyMs)
  })

const chunkOf = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

const hasty = { timeoutMs: 80 }

const late = { kind: 'unreachable', reason: 'timeout' }

const wires: HostileAnswer[] = [
  {
    name: 'a reset',
    reply: () => 'reset',
    outcome: { kind: 'unreachable', reason: 'reset' },
    becomes: 'again',
  },
  { name: 'no answer', reply: () => 'hang', outcome: late, becomes: 'again', provider: hasty },
  { name: 'closed without an answer', reply: say(''), outcome: { kind: 'unreachable' }, becomes: 'again' },
  {
    name: 'another protocol',
    reply: say('SSH-2.0-x\r\n'),
    outcome: { kind: 'unreachable' },
    becomes: 'again',
  },
  { name: 'half a header', reply: say('HTTP/1.1 20'), outcome: { kind: 'unreachable' }, becomes: 'again' },
  {
    name: 'an endless trickle of body',
    reply: pour('HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n', ' ', 5),
    outcome: late,
    becomes: 'again',
    provider: hasty,
  },
  {
    name: 'an endless trickle of headers',
    reply: pour('HTTP/1.1 200 OK\r\n', 'x: y\r\n', 5),
    outcome: late,
    becomes: 'again',
    provider: hasty,
  },
  {
    name: 'chunks without end',
    reply: pour('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', chunkOf(' '.repeat(9000)), 1),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: 'a header of 100 KB',
    reply: say(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`),
    outcome: { kind: 'unreachable' },
    becomes: 'again',
  },
  {
    name: 'a body cut off',
    reply: say('HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"accepted":['),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: 'chunks cut off',
    reply: say('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"acc\r\n'),
    outcome: unreadable,
    becomes: 'again',
  },
  {
    name: 'chunk sizes that are none',
    reply: say('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n'),
    outcome: { kind: expect.stringMatching(/unreadable|unreachable/) },
    becomes: 'again',
  },
  {
    name: 'two different lengths',
    reply: say('HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}!'),
    outcome: { kind: 'unreachable' },
    becomes: 'again',
  },
  {
    name: '101, switching to nothing we asked for',
    reply: say('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    outcome: { kind: 'unreachable' },
    becomes: 'again',
  },
  {
    name: 'an interim answer and no other',
    reply: raw((socket) => void socket.write('HTTP/1.1 103 Early Hints\r\n\r\n')),
    outcome: late,
    becomes: 'again',
    provider: hasty,
  },
]

/** Statuses that hold the batch: it is sent again. */
const holding = [
  201, 203, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308, 401, 402, 403, 404, 405, 407, 408, 409, 410,
  411, 414, 415, 422, 425, 429, 431, 451, 500, 501, 502, 503, 504, 507, 520, 599, 600, 999,
].map((status): HostileAnswer => ({
  name: `${status} with a body that says all is well`,
  reply: (received) => {
    const reply = good(() => ({}), status)(received)
    return typeof reply === 'object' && 'body' in reply
      ? { ...reply, headers: { location: `http://${received.headers.host ?? ''}/elsewhere` } }
      : reply
  },
  // An outcome with a name of its own has no status.
  outcome: status === 409 ? { kind: 'repeated' } : { status },
  becomes: 'again',
}))

const statuses: HostileAnswer[] = [
  ...holding,
  {
    name: '400 with HTML',
    reply: body(400, page),
    outcome: { kind: 'refused', status: 400 },
    becomes: 'cut',
  },
  {
    name: '413 of a proxy',
    reply: body(413, page),
    outcome: { kind: 'refused', status: 413 },
    becomes: 'cut',
  },
  {
    name: '202 with a breakdown',
    reply: good(() => ({}), 202),
    outcome: answered,
    becomes: 'delivered',
    deviation: /the status is 202/,
  },
  {
    name: '202 without one',
    reply: body(202, '{"requestId":"r"}'),
    outcome: { kind: 'unreadable' },
    becomes: 'again',
  },
  {
    name: '500 with a breakdown that accepts everything',
    reply: ({ payloadIds }) => {
      const reply = breakdown({ accepted: payloadIds, failed: [] })
      return typeof reply === 'object' && 'status' in reply ? { ...reply, status: 500 } : reply
    },
    outcome: { kind: 'unavailable', status: 500 },
    becomes: 'again',
  },
  ...['soon', '-5', '1e99', '', 'Sat, 99 Nov 2026 99:99:99 GMT', '0x10', '5; 6', 'ü'].map(
    (value): HostileAnswer => ({
      name: `503 with Retry-After "${value}"`,
      reply: body(503, page, { 'retry-after': value }),
      outcome: { kind: 'unavailable', retryAfterMs: null },
      becomes: 'again',
    }),
  ),
  ...['999999999', '99999999999999999999', 'Sat, 21 Nov 2099 00:00:00 GMT'].map((value): HostileAnswer => ({
    name: `503 with Retry-After "${value}", which is believed for ten minutes`,
    reply: body(503, page, { 'retry-after': value }),
    // At most ten years are kept; delivery waits for ten minutes.
    outcome: { kind: 'unavailable', retryAfterMs: 315_360_000_000 },
    becomes: 'again',
  })),
]

export const hostileWires: readonly HostileAnswer[] = [...wires, ...statuses]

const acknowledged = { kind: 'accepted_single' }
const doubtful = { kind: 'unreadable' }

export const hostileSingles: readonly HostileAnswer[] = [
  { name: '202 and a requestId', reply: acceptAll, outcome: acknowledged, becomes: 'delivered' },
  { name: '202 with nothing', reply: body(202, ''), outcome: acknowledged, becomes: 'delivered' },
  {
    name: '202 with a requestId that is a number',
    reply: body(202, '{"requestId":7}'),
    outcome: { ...acknowledged, requestId: '7' },
    becomes: 'delivered',
  },
  { name: '202 with HTML', reply: body(202, page), outcome: doubtful, becomes: 'again' },
  { name: '202 with a list', reply: body(202, '[]'), outcome: doubtful, becomes: 'again' },
  { name: '202 cut off', reply: body(202, '{"requestId"'), outcome: doubtful, becomes: 'again' },
  { name: '202 of 10 MB', reply: body(202, ' '.repeat(10_000_000)), outcome: doubtful, becomes: 'again' },
  { name: '200 and a requestId', reply: body(200, '{"requestId":"r"}'), outcome: doubtful, becomes: 'again' },
  { name: '200 with HTML', reply: body(200, page), outcome: doubtful, becomes: 'again' },
  { name: '200 with a breakdown', reply: good(() => ({})), outcome: doubtful, becomes: 'again' },
  ...[201, 204, 206, 301, 308, 401, 403, 404, 409, 429, 500, 503].map((status): HostileAnswer => ({
    name: `${status}`,
    reply: body(status, '{"requestId":"r"}', { location: '/elsewhere' }),
    outcome: status === 409 ? { kind: 'repeated' } : { status },
    becomes: 'again',
  })),
  {
    name: '400 with field details, while nothing else was accepted since',
    reply: body(400, '{"validationErrorDetails":[{"field":"gps.latitude","message":"empty"}]}'),
    outcome: { kind: 'refused', details: [{ field: 'gps.latitude', message: 'empty' }] },
    becomes: 'again',
  },
]

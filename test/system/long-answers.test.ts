// Answers of any size, by a real service to the real thread: the thread lives, its memory is bounded, and what the answer
// says about the payloads of the batch counts.

import { describe, expect, onTestFinished, test } from 'vitest'
import { createSenderWorker } from '../../src/delivery/transport/sender-worker.ts'
import { transportOptions } from '../../src/delivery/transport/transport-options.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { providerOptions } from '../support/delivery-world.ts'
import { startRawService } from '../support/raw-service.ts'
import { createTransportWorld, ids } from '../support/transport-world.ts'

const { send } = createTransportWorld()
const mebibyte = 1024 ** 2
const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n'
const own = ids.map((id) => `"${id}"`).join()
const foreign = '"99999999-9999-8999-a999-999999999999",'

type Body = { start: string; fill: string; fillBytes: number; end?: string }

/** Answers once with a body of so many bytes of `fill`, as fast as it is read. */
async function answerWith({ start, fill, fillBytes, end = '' }: Body, options = {}) {
  const events: GatewayEvent[] = []
  const worker = createSenderWorker({ emit: (event) => void events.push(event) })
  onTestFinished(() => worker.close())
  const part = Buffer.from(fill.repeat(Math.ceil(65_536 / fill.length)))
  let written = 0
  const service = await startRawService({
    onData({ socket }) {
      if (written > 0) return
      socket.write(head + start)
      const pour = () => {
        while (written < fillBytes) {
          written += part.length
          if (socket.write(part)) continue
          socket.once('drain', pour)
          return
        }
        socket.end(end)
      }
      pour()
    },
  })
  const provider = providerOptions(service.url, { timeoutMs: 20_000, ...options })
  const transport = worker.open(transportOptions(provider, {}))
  const { outcome } = await send(transport)
  expect(events).toEqual([])
  expect(worker.threadsLost()).toBe(0)
  return { outcome, written }
}

const unlimited = { responseBytesMax: 1e9 }

describe('an answer of 16 MiB and more', () => {
  test.each<[string, Body, Record<string, unknown>]>([
    [
      'a list of empty objects',
      { start: '{"accepted":[', fill: '{},', fillBytes: 16 * mebibyte, end: `${own}],"failed":[]}` },
      {
        kind: 'answered',
        accepted: 'all',
        deviations: expect.arrayContaining([expect.stringMatching(/not strings: 559\d{4}/)]),
      },
    ],
    [
      'a list of empty objects in place of the failed ones',
      { start: `{"accepted":[${own}],"failed":[`, fill: '{},', fillBytes: 16 * mebibyte, end: '0]}' },
      { kind: 'answered', accepted: 'all' },
    ],
    [
      'deep nesting',
      { start: `{"accepted":[${own}],"failed":[],"x":`, fill: '[', fillBytes: 16 * mebibyte },
      { kind: 'unreadable' },
    ],
    [
      'one huge string',
      { start: `{"accepted":[${own}],"failed":[],"x":"`, fill: 'y', fillBytes: 200 * mebibyte, end: '"}' },
      { kind: 'answered', accepted: 'all' },
    ],
    [
      'one huge string in the list',
      { start: `{"accepted":[${own},"`, fill: '\\u0041', fillBytes: 16 * mebibyte, end: '"],"failed":[]}' },
      { kind: 'answered', accepted: 'all' },
    ],
    [
      'one huge number',
      {
        start: `{"accepted":[${own}],"failed":[],"responseCode":`,
        fill: '1',
        fillBytes: 16 * mebibyte,
        end: '}',
      },
      { kind: 'answered', accepted: 'all' },
    ],
    [
      'a million foreign ids',
      { start: '{"accepted":[', fill: foreign, fillBytes: 1e6 * foreign.length, end: `${own}],"failed":[]}` },
      { kind: 'answered', accepted: 'all' },
    ],
    [
      'the ids of the batch again and again',
      { start: '{"accepted":[', fill: `${own},`, fillBytes: 32 * mebibyte, end: `${own}],"failed":[]}` },
      { kind: 'answered', accepted: 'all', failed: [] },
    ],
    [
      'the first payload failed again and again',
      {
        start: `{"accepted":[${own}],"failed":[`,
        fill: `{"payloadId":"${ids[0]}","errorType":"Internal","errorMessage":"${'m'.repeat(200)}"},`,
        fillBytes: 32 * mebibyte,
        end: `{"payloadId":"${ids[0]}","errorType":"Last"}]}`,
      },
      { kind: 'answered', accepted: [...ids], failed: [{ payloadId: ids[0], errorType: 'Last' }] },
    ],
    ['white space', { start: '', fill: ' ', fillBytes: 64 * mebibyte, end: '{}' }, { kind: 'unreadable' }],
  ])('%s', async (_name, body, expected) => {
    const before = process.memoryUsage().rss
    const { outcome } = await answerWith(body, unlimited)
    expect(outcome).toMatchObject(expected)
    expect(process.memoryUsage().rss - before).toBeLessThan(120 * mebibyte)
  })

  test('200 MiB are not read beyond delivery.max_response_bytes; what was named until there counts', async () => {
    const body = { start: `{"accepted":["${ids[0]}",`, fill: '{},', fillBytes: 200 * mebibyte }
    const { outcome, written } = await answerWith(body, { responseBytesMax: 16 * mebibyte })
    expect(outcome).toMatchObject({ accepted: [ids[0]], failed: [], complete: false, tooLarge: true })
    expect(written).toBeLessThan(40 * mebibyte)
  })

  test('an endless answer ends at the deadline, or at the limit', async () => {
    const body = { start: `{"accepted":["${ids[0]}"`, fill: ' ', fillBytes: Infinity }
    const { outcome } = await answerWith(body, { responseBytesMax: 64 * mebibyte })
    expect(outcome).toMatchObject({ accepted: [ids[0]], complete: false, tooLarge: true })
    const late = await answerWith({ ...body, fillBytes: 1e12 }, { responseBytesMax: 1e15, timeoutMs: 500 })
    expect(late.outcome).toMatchObject({ accepted: [ids[0]], complete: false, tooLarge: false })
    const nothing = await answerWith({ ...body, start: '{' }, { responseBytesMax: 1e15, timeoutMs: 500 })
    expect(nothing.outcome).toMatchObject({ kind: 'unreachable', reason: 'timeout' })
  })

  test('many at once', async () => {
    const body = { start: '{"accepted":[', fill: '{},', fillBytes: 8 * mebibyte, end: `${own}],"failed":[]}` }
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => answerWith(body, unlimited)))
    for (const { outcome } of outcomes) expect(outcome).toMatchObject({ accepted: 'all' })
  })
})

describe('an error answer of any size', () => {
  test('is known by its status, and its start is quoted', async () => {
    const events: GatewayEvent[] = []
    const worker = createSenderWorker({ emit: (event) => void events.push(event) })
    onTestFinished(() => worker.close())
    const service = await startRawService({
      onData: ({ socket }) =>
        void socket.end(`HTTP/1.1 500 X\r\nconnection: close\r\n\r\n<html>${'x'.repeat(20 * mebibyte)}`),
    })
    const transport = worker.open(transportOptions(providerOptions(service.url, unlimited), {}))
    expect((await send(transport)).outcome).toMatchObject({
      kind: 'unavailable',
      status: 500,
      message: expect.stringMatching(/^"<html>x+…"$/),
    })
    expect(events).toEqual([])
  })
})

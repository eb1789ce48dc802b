// Answers of any size, by a real service to the real thread: the thread lives, and its memory is bounded.

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

/** A part more may be written. */
const most = 8 * mebibyte - 128 * 1024

describe('an answer of nearly 8 MiB', () => {
  test.each<[string, Body, Record<string, unknown>]>([
    [
      'a list of empty objects',
      { start: '{"accepted":[', fill: '{},', fillBytes: most, end: `${own}],"failed":[]}` },
      {
        accepted: 'all',
        deviations: expect.arrayContaining([expect.stringMatching(/not strings: 27\d{5}/)]),
      },
    ],
    [
      'lists in the place of the failed ones',
      { start: `{"accepted":[${own}],"failed":[`, fill: '[[],0.5],', fillBytes: most, end: '0]}' },
      { accepted: 'all' },
    ],
    [
      'one huge string',
      { start: `{"accepted":[${own}],"failed":[],"x":"`, fill: 'y', fillBytes: most, end: '"}' },
      { accepted: 'all' },
    ],
    [
      'foreign ids',
      { start: '{"accepted":[', fill: foreign, fillBytes: most, end: `${own}],"failed":[]}` },
      { accepted: 'all' },
    ],
    [
      'the first payload failed again and again',
      {
        start: `{"accepted":[${own}],"failed":[`,
        fill: `{"payloadId":"${ids[0]}","errorType":"Internal","errorMessage":"${'m'.repeat(200)}"},`,
        fillBytes: most,
        end: `{"payloadId":"${ids[0]}","errorType":"Last"}]}`,
      },
      { accepted: [...ids], failed: [{ payloadId: ids[0], errorType: 'Last' }] },
    ],
  ])('of %s is read', async (_name, body, expected) => {
    const { outcome } = await answerWith(body)
    expect(outcome).toMatchObject({ kind: 'answered', ...expected })
  })

  test('many at once', async () => {
    const body = { start: '{"accepted":[', fill: '{},', fillBytes: most, end: `${own}],"failed":[]}` }
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => answerWith(body)))
    for (const { outcome } of outcomes) expect(outcome).toMatchObject({ accepted: 'all' })
  })
})

test('200 MiB are not read beyond 8 MiB', async () => {
  const body = { start: `{"accepted":["${ids[0]}",`, fill: '{},', fillBytes: 200 * mebibyte }
  const before = process.memoryUsage().rss
  const { outcome, written } = await answerWith(body)
  expect(outcome).toMatchObject({ kind: 'unreadable', tooLarge: true })
  expect(written).toBeLessThan(32 * mebibyte)
  expect(process.memoryUsage().rss - before).toBeLessThan(120 * mebibyte)
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
    const transport = worker.open(transportOptions(providerOptions(service.url), {}))
    expect((await send(transport)).outcome).toMatchObject({
      kind: 'unavailable',
      status: 500,
      message: expect.stringMatching(/^"<html>x+…"$/),
    })
    expect(events).toEqual([])
  })
})

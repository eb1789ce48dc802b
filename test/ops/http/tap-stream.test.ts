import { describe, expect, test } from 'vitest'
import type { Message } from '../../../src/domain/message.ts'
import type { PayloadId, ProviderName } from '../../../src/domain/ids.ts'
import type { MappedPayload } from '../../../src/domain/payload.ts'
import { createTaps } from '../../../src/ingest/ingest.ts'
import type { MapResult } from '../../../src/mapping/mapping.ts'
import { handClock, startedOps } from '../../support/ops-world.ts'

const sender = { clientId: 'client-1', userName: 'bob', certificateName: null, identity: null }

function messageOn(topic: string, bytes = Buffer.from('{"v":1}')): Message {
  return { topic, bytes, qos: 1, retain: false, dup: false, sender, arrivedAt: 1_750_000_000_000 }
}

function payloadsOf(device: string, count: number): MappedPayload[] {
  const payload: MappedPayload = {
    provider: 'default' as ProviderName,
    device,
    deviceTime: null,
    payloadId: 'x' as PayloadId,
    windowKey: '',
    duplicateRule: 'always',
    json: `{"payloadId":"x","of":"${device}"}`,
  }
  return Array.from({ length: count }, () => payload)
}

function mapped(device: string, count = 1): MapResult {
  return { kind: 'payloads', source: 'trucks', payloads: payloadsOf(device, count) }
}

async function world() {
  const ops = await startedOps()
  const taps = createTaps({ clock: ops.clock })
  ops.ops.attach({ taps })
  return { ...ops, taps, tapUrl: `${ops.url}/tap` }
}

/** A tap that is read line by line. */
async function openTap(url: string) {
  const end = new AbortController()
  const response = await fetch(url, { signal: end.signal })
  const lines = linesOf(response)
  return { response, end: () => end.abort(), next: () => nextMessage(lines) }
}

async function* linesOf({ body }: Response): AsyncGenerator<Record<string, unknown>> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield JSON.parse(line) as Record<string, unknown>
  }
}

async function nextMessage(lines: AsyncGenerator<Record<string, unknown>>) {
  for (;;) {
    const { value, done } = await lines.next()
    if (done === true) throw new Error('the stream ended')
    if (value['kind'] !== 'alive') return value
  }
}

describe('a tap', () => {
  const shown = {
    kind: 'message',
    at: '2025-06-15T15:06:40.000Z',
    topic: 'a/b',
    qos: 1,
    retain: false,
    dup: false,
    client: 'client-1',
    user: 'bob',
    certificate: null,
    identity: null,
    message: '{"v":1}',
    source: 'trucks',
    result: 'payloads',
    payloads: [{ payloadId: 'x', of: 'truck-7' }],
  }
  const message = messageOn('a/b')
  const ignored = { kind: 'ignored', source: 'trucks', reason: 'no fix' } as const
  const { payloads: _payloads, ...withoutPayloads } = shown
  const { message: _text, ...notText } = withoutPayloads
  const refused: MapResult = {
    kind: 'unmappable',
    source: null,
    device: null,
    reason: 'NO_SOURCE',
    detail: 'None.',
    windowKey: '',
  }
  const properties = { contentType: 'gps', expiryS: 5 }
  test.each<[string, Message, MapResult, object]>([
    ['the raw message, its sender and its result', message, mapped('truck-7'), shown],
    [
      'the properties of a message of MQTT 5',
      { ...message, userProperties: { vin: 'V1' }, properties },
      mapped('truck-7'),
      { ...shown, userProperties: { vin: 'V1' }, properties },
    ],
    ['no properties', { ...message, userProperties: null, properties: null }, mapped('truck-7'), shown],
    [
      'bytes that are not text, and why they are refused',
      messageOn('a/b', Buffer.from([0, 255])),
      refused,
      {
        ...notText,
        hex: '00ff',
        source: null,
        result: 'unmappable',
        device: null,
        reason: 'NO_SOURCE',
        detail: 'None.',
      },
    ],
    ['why it is ignored', message, ignored, { ...withoutPayloads, result: 'ignored', reason: 'no fix' }],
  ])('shows %s', async (_, taken, result, line) => {
    await using of = await world()
    const tap = await openTap(of.tapUrl)
    expect(tap.response.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
    of.taps.record(taken, result)
    expect(await tap.next()).toEqual(line)
    tap.end()
  })

  test('shows payloads of collected values', async () => {
    await using of = await world()
    const tap = await openTap(of.tapUrl)
    of.taps.recordClosed({ payloads: payloadsOf('van-1', 1), writes: [], closed: 1, unsent: [] })
    expect(await tap.next()).toMatchObject({ kind: 'closed', payloads: [{ of: 'van-1' }] })
    tap.end()
  })

  test('copies the message, since the daemon reuses it', async () => {
    await using of = await world()
    const tap = await openTap(of.tapUrl)
    const message = messageOn('a')
    of.taps.record(message, mapped('x'))
    message.topic = 'b'
    message.bytes.fill(0)
    expect(await tap.next()).toMatchObject({ topic: 'a', message: '{"v":1}' })
    tap.end()
  })

  test('cuts a long message, and of many payloads shows the first ones', async () => {
    await using of = await world()
    const tap = await openTap(of.tapUrl)
    of.taps.record(messageOn('a', Buffer.from(`${'x'.repeat(65_535)}äöü`)), mapped('x', 30))
    const line = await tap.next()
    expect(line).toMatchObject({ message: 'x'.repeat(65_535), cutBytes: 5, morePayloads: 10 })
    expect(line['payloads']).toHaveLength(20)
    tap.end()
  })

  test.each([
    ['device=truck-7', 'a/other', 'truck-7', 'truck-8'],
    ['topic=fleet/%2B/data', 'fleet/1/data', 'x', 'x'],
    ['source=trucks', 'a', 'x', 'x'],
  ])('with ?%s shows only matching messages', async (query, topic, device, other) => {
    await using of = await world()
    const tap = await openTap(`${of.tapUrl}?${query}`)
    of.taps.record(messageOn('else/where'), { ...mapped(other), source: 'vans' })
    of.taps.record(messageOn(topic), mapped(device))
    expect(await tap.next()).toMatchObject({ topic, source: 'trucks' })
    tap.end()
  })

  test('of a device shows its ignored messages too, by its topic', async () => {
    await using of = await world()
    const tap = await openTap(`${of.tapUrl}?device=truck-7`)
    for (const topic of ['a/truck-77', 'a/truck-7'])
      of.taps.record(messageOn(topic), { kind: 'ignored', source: 'trucks', reason: 'no fix' })
    expect(await tap.next()).toMatchObject({ topic: 'a/truck-7' })
    tap.end()
  })

  test('shows at most 100 messages a second, and the number of those omitted', async () => {
    await using of = await world()
    const tap = await openTap(of.tapUrl)
    for (let at = 0; at < 130; at += 1) of.taps.record(messageOn(`t/${at}`), mapped('x'))
    const shown = []
    for (let at = 0; at < 100; at += 1) shown.push((await tap.next())['topic'])
    expect(shown.at(-1)).toBe('t/99')
    expect(await tap.next()).toEqual({ kind: 'dropped', count: 30 })
    of.clock.move(1000)
    of.taps.record(messageOn('later'), mapped('x'))
    expect(await tap.next()).toMatchObject({ topic: 'later' })
    tap.end()
  })

  test('costs nothing without a reader, also after the reader disconnected', async () => {
    await using of = await world()
    expect(of.taps.on()).toBe(false)
    const tap = await openTap(of.tapUrl)
    expect(of.taps.on()).toBe(true)
    tap.end()
    await expect.poll(() => of.taps.on()).toBe(false)
  })

  test('is limited to four at once', async () => {
    await using of = await world()
    const opened = await Promise.all([1, 2, 3, 4].map(() => openTap(of.tapUrl)))
    const fifth = await fetch(of.tapUrl)
    expect(fifth.status).toBe(503)
    expect(await fifth.json()).toMatchObject({ what: 'There are too many taps.' })
    for (const tap of opened) tap.end()
  })

  test('is refused for an invalid filter and for an unknown parameter', async () => {
    await using of = await world()
    for (const query of ['topic=a/%23/b', 'devcie=x'])
      expect((await fetch(`${of.tapUrl}?${query}`)).status).toBe(400)
    expect((await fetch(of.tapUrl, { method: 'HEAD' })).status).toBe(200)
    expect(of.taps.on()).toBe(false)
  })

  test('ends when the daemon stops', async () => {
    const of = await world()
    const tap = await openTap(of.tapUrl)
    const ended = tap.next().then(
      () => 'goes on',
      () => 'ended',
    )
    await of.ops.stop()
    expect(await ended).toBe('ended')
  })

  test('sends a line every few seconds to show that it is alive', async () => {
    await using of = await world()
    const end = new AbortController()
    const lines = linesOf(await fetch(of.tapUrl, { signal: end.signal }))
    expect((await lines.next()).value).toEqual({ kind: 'alive' })
    of.clock.move(4000)
    expect((await lines.next()).value).toEqual({ kind: 'alive' })
    end.abort()
  })
})

test('a ring without a reader stays small, and counts the messages that it discarded', () => {
  const clock = handClock()
  const taps = createTaps({ clock })
  const opened = taps.open({ device: null, topic: null, source: null }, () => undefined)
  if (opened.kind !== 'open') throw new Error('not open')
  for (let second = 0; second < 5; second += 1) {
    for (let at = 0; at < 100; at += 1) taps.record(messageOn('t'), mapped('x'))
    clock.move(1000)
  }
  expect(opened.reader.take()).toHaveLength(256)
  expect(opened.reader.takeDropped()).toBe(244)
  expect(opened.reader.takeDropped()).toBe(0)
})

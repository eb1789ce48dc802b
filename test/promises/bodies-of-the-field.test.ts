// What a device sends in another form than its source says is kept whole, named, and cured by one option.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { deflateSync, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { cborOf, messagePackOf } from '../support/binary-values.ts'
import { send } from '../support/ops-world.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'
import { resultsOf, rowTime, type Row } from '../support/row-pipeline.ts'

/** Not UTF-8, in a field that the sources read. */
const latin1 = Buffer.from(messageOf(4, { city: 'Z\u00FCrich' }), 'latin1')
const msgpack = messagePackOf(JSON.parse(messageOf(5)))

const bodies = [
  { device: 'gzip', bytes: gzipSync(messageOf(1)), option: 'compression: gzip' },
  { device: 'zlib', bytes: deflateSync(messageOf(2)), option: 'compression: zlib' },
  { device: 'utf16', bytes: Buffer.from(messageOf(3), 'utf16le'), option: 'charset: utf-16le' },
  { device: 'latin1', bytes: latin1, option: 'charset: latin1' },
  { device: 'msgpack', bytes: msgpack, option: 'encoding: msgpack' },
]

const sourceOf = (device: string, option: string) => `
  - name: ${device}
    topic: telemetry/v1/${device}
    device: ${device}
    ${option}
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }
      fields: { CITY: { path: city, type: text } }`

test('a body in another form becomes a dead letter that names the option, and the option cures it', async () => {
  const pipeline = await startPipeline({
    config: (baseUrl) =>
      [
        'ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }',
        `sources: ${bodies.map(({ device }) => sourceOf(device, '')).join('')}`,
        'defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }',
        'spool: { path: ./spool, allow_in_memory: true, max_bytes: 32MiB, min_free_bytes: 1MiB }',
        `delivery: { base_url: "${baseUrl}", batch: { linger: 20ms } }`,
        'ops: { listen: "127.0.0.1:0", stop_deadline: 5s }',
        'log: { level: error }',
      ].join('\n'),
  })
  const { gateway, sandbox, folder } = pipeline
  const client = await pipeline.device('client')
  for (const [at, { device, bytes }] of bodies.entries())
    client.publish({ topic: topicOf(device), payload: bytes, messageId: at + 1 })
  await client.acked(bodies.length)
  const post = (path: string) => send(gateway.addresses.control, path, { method: 'POST' })
  const exported = await (await post('/control/dead-letters/export?all=1')).text()
  const details = new Map(
    exported
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { device: string; deadLetter: { detail: string } })
      .map(({ device, deadLetter }) => [device, deadLetter.detail]),
  )
  for (const { device, option } of bodies) expect(details.get(device)).toContain(`\`${option}\``)

  const path = join(folder, 'gateway.yaml')
  let config = await readFile(path, 'utf8')
  for (const { device, option } of bodies)
    config = config.replace(sourceOf(device, ''), sourceOf(device, option))
  await writeFile(path, config)
  expect(await gateway.reload('the test')).toMatchObject({ kind: 'reloaded' })
  expect(await (await post('/control/dead-letters/remap')).json()).toMatchObject({
    remapped: bodies.length,
    payloads: bodies.length,
    stillRefused: {},
  })
  await pipeline.until(() => sandbox.stats().distinctPayloadIds === bodies.length)
  const received = bodies.map(({ device }) => sandbox.received({ device, limit: 9 }).length)
  expect(received).toEqual(bodies.map(() => 1))
  expect(pipeline.status().internals.conservation.messages.difference).toBe(0)
})

/** Three records on lines of their own, or behind each other; the second one is broken. */
const broken = (between: string, fault: (record: string) => string) => {
  const records = [7, 8, 9].map((n) => messageOf(n))
  return {
    cured: records.join(between),
    sent: records.map((one, at) => (at === 1 ? fault(one) : one)).join(between),
  }
}

test.each([
  ['a line without its end', broken('\n', (record) => record.slice(0, -8))],
  ['a line with a comma too many', broken('\r\n', (record) => record.replace('}', ',}'))],
  ['a line with something else', broken('\n', () => 'ERR 17')],
  ['an object of several lines', broken('\n', (record) => record.replaceAll(',', '\n,').replace('":', '"'))],
])(
  'of several JSON objects, %s is kept alone, and sent alone once it is cured',
  async (_what, { sent, cured }) => {
    const pipeline = await startPipeline()
    const { gateway, sandbox } = pipeline
    const client = await pipeline.device('truck-7')
    client.publish({ topic: topicOf('truck-7'), payload: sent, messageId: 1 })
    await client.acked(1)
    await pipeline.until(() => sandbox.stats().distinctPayloadIds === 2)
    const post = async (path: string, body?: string) =>
      (
        await send(gateway.addresses.control, path, { method: 'POST', ...(body !== undefined && { body }) })
      ).text()
    const exported = await post('/control/dead-letters/export?all=1')
    const { deadLetter } = JSON.parse(exported) as { deadLetter: { reason: string; detail: string } }
    expect(deadLetter).toMatchObject({
      reason: 'NOT_JSON',
      detail: expect.stringMatching(/^Record 2 of the message: /),
    })
    expect(JSON.parse(await post('/control/dead-letters/remap'))).toMatchObject({
      stillRefused: { NOT_JSON: 1 },
    })

    const edited = (bytes: string) =>
      exported.replaceAll(Buffer.from(sent).toString('base64'), Buffer.from(bytes).toString('base64'))
    // Another number of records: which one was broken is not known.
    expect(
      JSON.parse(await post('/control/dead-letters/import', edited(`${cured}\n${messageOf(3)}`))),
    ).toMatchObject({ remap: { payloads: 0 } })
    expect(JSON.parse(await post('/control/dead-letters/import', edited(cured)))).toMatchObject({
      remap: { payloads: 1 },
    })
    await pipeline.until(() => sandbox.stats().distinctPayloadIds === 3)
    expect(sandbox.stats().payloadsAccepted).toBe(3)
    expect(pipeline.status().internals.conservation.messages.difference).toBe(0)
  },
)

test.each([
  ['one object that is cut off', `{"devices":[\n${messageOf(1)}\n`],
  ['a list that is cut off', `[\n${messageOf(1)},\n${messageOf(2)},\n`],
  ['an object with something behind it', `${messageOf(1)} }`],
])('%s is no list of records, and is kept whole', async (_what, payload) => {
  const pipeline = await startPipeline()
  const client = await pipeline.device('truck-7')
  client.publish({ topic: topicOf('truck-7'), payload, messageId: 1 })
  await client.acked(1)
  expect(pipeline.status().totals.payloads).toBe(0)
  expect(pipeline.status().spool.deadLetters).toBe(1)
})

test('UTF-8 that is read as Latin-1 is sent and counted, and never changed', async () => {
  const city = (text: string, charset: BufferEncoding) =>
    Buffer.from(JSON.stringify({ ts: rowTime, lat: 48, lon: 9, city: text }), charset)
  const row = (charset: string | undefined, message: Buffer): Row => ({
    source: { charset },
    map: { fields: { city: { path: 'city', type: 'text' } } },
    messages: [message],
  })
  const results = await resultsOf({
    wrong: row('latin1', city('Z\u00fcrich', 'utf8')),
    right: row('latin1', city('Z\u00fcrich', 'latin1')),
    ascii: row('latin1', city('Bern', 'utf8')),
    marked: row('latin1', Buffer.concat([Buffer.from('efbbbf', 'hex'), city('Z\u00fcrich', 'utf8')])),
    none: row(undefined, city('Z\u00fcrich', 'utf8')),
  })
  const found = Object.entries(results).map(([name, { sent, flagged }]) => [name, sent[0]?.['city'], flagged])
  expect(found).toEqual([
    ['wrong', 'Z\u00c3\u00bcrich', ['text: UTF-8, read as latin1']],
    ['right', 'Z\u00fcrich', []],
    ['ascii', 'Bern', []],
    ['marked', 'Z\u00fcrich', []],
    ['none', 'Z\u00fcrich', []],
  ])
})

test('a message of very many values is a dead letter, in every encoding', async () => {
  const commas = ','.repeat(400_000)
  const objects = Array.from({ length: 70_000 }, () => ({}))
  const row = (encoding: string, message: string | Buffer): Row => ({
    source: { encoding },
    messages: [message],
  })
  const results = await resultsOf({
    csv: row('csv', commas),
    lines: row('csv-tab', '\n'.repeat(400_000)),
    json: row('json', JSON.stringify(objects)),
    jsonLines: row('json', '{}\n'.repeat(70_000)),
    cbor: row('cbor', cborOf(objects)),
    msgpack: row('msgpack', messagePackOf(objects)),
    utf16: row('csv', Buffer.from(`\uFEFF${commas}`, 'utf16le')),
    split: { map: { fields: { n: { path: 'n.$split(",")[-1]', type: 'text' } } }, messages: [{ n: commas }] },
  })
  const { split, ...others } = results
  expect(Object.values(others).flatMap(({ refused }) => refused)).toEqual(Array<string>(7).fill('TOO_MANY'))
  expect(split?.sent.map(({ n }) => n)).toEqual([undefined])
})

test('bytes in a message are no number by themselves, and `hex` reads them', async () => {
  const map = {
    signals: [{ type: 'X', path: 'raw' }],
    fields: {
      n: { path: 'raw', type: 'number' },
      of: { expr: 'hex(raw)', type: 'number' },
      text: { path: 'raw', type: 'text' },
    },
  }
  // 01e5 would be ten to the power of five.
  const messages = ['0102', '01e5', 'ff00'].map((hex, index) => ({
    ts: rowTime + index * 1000,
    lat: 48,
    lon: 9,
    raw: Buffer.from(hex, 'hex'),
  }))
  const row = (encoding: string, write: (message: object) => Buffer): Row => ({
    map,
    source: { encoding },
    messages: messages.map(write),
  })
  const results = await resultsOf({ cbor: row('cbor', cborOf), msgpack: row('msgpack', messagePackOf) })
  for (const { sent, omitted } of Object.values(results)) {
    expect(sent.map(({ signals, n, of, text }) => [signals, n, of, text])).toEqual([
      [undefined, undefined, 258, '0x0102'],
      [undefined, undefined, 485, '0x01e5'],
      [undefined, undefined, 65_280, '0xff00'],
    ])
    expect(omitted).toEqual([
      ...Array<string>(3).fill('X: not a number'),
      ...Array<string>(3).fill('n: not a number'),
    ])
  }
})

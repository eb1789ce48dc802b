import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Explained } from '../../src/mapping/mapping.ts'
import type { DeviceMessage, DeviceView } from '../../src/ops/ops.ts'
import { configText, positionMap } from '../support/config-text.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const config = (options: { ledger?: boolean; devices?: string } = {}) =>
  configText({
    sources: `[{ name: trucks, topic: "telemetry/v1/{device}", map: ${positionMap.replace('}', '}, speed: { path: v }')} }]`,
    more: `
devices: ${options.devices ?? '{ file: ./devices.csv, unknown: accept }'}
privacy: { profiles: { hidden: { round: 1 } } }
ledger: { enabled: ${options.ledger ?? true} }`,
  })

async function start(folder: string, options: Parameters<typeof config>[0] = {}): Promise<Pipeline> {
  return startPipeline({ config: config(options), folder })
}

async function folderWith(rows: string): Promise<string> {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), `device,asset_id,privacy\n${rows}`)
  return folder
}

async function publish(pipeline: Pipeline, name: string, messages: readonly object[]): Promise<void> {
  await pipeline.publish(name, ...messages.map((one) => JSON.stringify({ lat: 52.5, lon: 13.4, ...one })))
}

async function ask(pipeline: Pipeline, path: string) {
  const response = await fetch(`${pipeline.gateway.addresses.ops}${path}`)
  return { status: response.status, body: (await response.json()) as never }
}

const deviceOf = async (pipeline: Pipeline, name: string): Promise<DeviceView> =>
  (await ask(pipeline, `/devices/${name}`)).body

async function restored(pipeline: Pipeline): Promise<void> {
  for (;;) {
    const { restored: isRestored } = (await ask(pipeline, '/devices')).body as { restored: boolean }
    if (isRestored) return
    await pipeline.until(() => true)
  }
}

function sumOf(device: object): number {
  const { messagesByHour } = device as { messagesByHour: readonly number[] }
  expect(messagesByHour).toHaveLength(24)
  return messagesByHour.reduce((sum, count) => sum + count, 0)
}

test('a device keeps its record over a restart, and its messages are counted on', async () => {
  const folder = await folderWith('')
  const first = await start(folder)
  const ts = Date.now() - 5000
  await publish(first, 'truck-1', [
    { ts, v: 999_999 },
    { ts: ts + 1000, lat: 48.25, lon: 11.5 },
  ])
  await first.until(() => first.status().totals.delivered === 2)
  const before = await deviceOf(first, 'truck-1')
  expect(before).toMatchObject({
    device: 'truck-1',
    listed: false,
    state: 'sending',
    messages: 2,
    messagesPerHour: 2,
    position: { latitude: 48.25, longitude: 11.5, at: new Date(ts + 1000).toISOString(), fixed: true },
    client: { clientId: 'truck-1', state: 'connected' },
  })
  expect(before.lastAccepted?.requestId).toMatch(/^[0-9a-f-]{36}$/)
  await first.gateway.stop('restart')

  const second = await start(folder)
  await restored(second)
  const after = await deviceOf(second, 'truck-1')
  expect(sumOf(after)).toBe(2)
  expect(after).toMatchObject({
    messages: 2,
    firstSeen: before.firstSeen,
    lastSeen: before.lastSeen,
    position: before.position,
    lastAccepted: before.lastAccepted,
    withheld: [{ field: 'speed', count: 1 }],
  })
  await publish(second, 'truck-1', [{ ts: ts + 3000, v: 999_999 }])
  expect(sumOf(await deviceOf(second, 'truck-1'))).toBe(3)
  expect(await ask(second, '/devices?hours=1')).toMatchObject({
    body: { devices: [{ device: 'truck-1', messagesByHour: expect.arrayContaining([0]) as number[] }] },
  })
  expect(await deviceOf(second, 'truck-1')).toMatchObject({
    messages: 3,
    firstSeen: before.firstSeen,
    withheld: [{ field: 'speed', count: 2 }],
  })
})

test('a reload with another row keeps all records, and shows the new device that never sent', async () => {
  const folder = await folderWith('truck-1,TRK-1,\n')
  const pipeline = await start(folder)
  await publish(pipeline, 'truck-1', [{ ts: Date.now(), v: 999_999 }])
  await publish(pipeline, 'truck-2', [{ ts: Date.now() }])
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,TRK-1\ntruck-9,TRK-9\n')
  await pipeline.gateway.reload('test')

  const { body } = await ask(pipeline, '/devices')
  expect(body).toMatchObject({ total: 3, seen: 2, states: { never_sent: 1, sending: 2 } })
  expect((body as { devices: DeviceView[] }).devices.map(({ device, state }) => [device, state])).toEqual([
    ['truck-9', 'never_sent'],
    ['truck-1', 'sending'],
    ['truck-2', 'sending'],
  ])
  expect(await deviceOf(pipeline, 'truck-1')).toMatchObject({
    assetId: 'TRK-1',
    messages: 1,
    withheld: [{ field: 'speed', count: 1 }],
  })
  expect(await deviceOf(pipeline, 'truck-9')).toMatchObject({
    listed: true,
    lastSeen: null,
    assetId: 'TRK-9',
  })
  await publish(pipeline, 'truck-9', [{ ts: Date.now() }])
  expect(await deviceOf(pipeline, 'truck-9')).toMatchObject({ state: 'sending', messages: 1 })
})

test('only a device that was never heard of is not found, and the nearest names are given', async () => {
  const pipeline = await start(await folderWith('truck-17,TRK-1,\n'))
  const { status, body } = await ask(pipeline, '/devices/truk-17')
  expect(status).toBe(404)
  expect(body).toMatchObject({ act: 'Did you mean "truck-17"?' })
  expect((await ask(pipeline, '/devices/truck-17')).status).toBe(200)
  expect((await ask(pipeline, '/devices?state=asleep')).status).toBe(400)
})

test('what became no payload is shown with its reason and its time', async () => {
  const pipeline = await start(await folderWith(''))
  const noFix = (ts: number) => JSON.stringify({ ts, lat: 0, lon: 0 })
  await pipeline.publish('truck-1', 'not json', noFix(1_763_690_000_000), noFix(1_763_690_001_000))
  const view = await deviceOf(pipeline, 'truck-1')
  expect(view).toMatchObject({ state: 'not_mapped', messages: 3, deadLetters: 1, ignored: 2, position: null })
  expect(view.reasons).toMatchObject([
    { kind: 'dead', source: 'trucks', reason: 'NOT_JSON', count: 1 },
    { kind: 'ignored', source: 'trucks', reason: 'no fix', count: 2 },
  ])
  expect(view.why).toBe('Its last message was ignored: no fix (2 times).')
  const { stdout } = await runCli(['devices', '--url', pipeline.gateway.addresses.ops])
  expect(stdout).toMatch(/^truck-1 +not listed +not mapped .*Its last message was ignored: no fix/m)
})

test('the answers of the service are noted without a ledger, too', async () => {
  const folder = await folderWith('')
  const pipeline = await start(folder, { ledger: false })
  await publish(pipeline, 'truck-1', [{ ts: Date.now() }])
  await pipeline.until(() => pipeline.status().totals.delivered === 1)
  const { lastAccepted } = await deviceOf(pipeline, 'truck-1')
  expect(lastAccepted?.requestId).toBeTruthy()
  expect(pipeline.events.map(({ kind }) => kind)).not.toContain('ledger_opened')
  await pipeline.gateway.stop('restart')
  const again = await start(folder, { ledger: false })
  await restored(again)
  expect((await deviceOf(again, 'truck-1')).lastAccepted).toEqual(lastAccepted)
})

test('a duplicate is counted at its device, as a message and as a duplicate', async () => {
  const pipeline = await start(await folderWith(''))
  const ts = Date.now()
  await publish(pipeline, 'truck-1', [{ ts }, { ts }])
  expect(await deviceOf(pipeline, 'truck-1')).toMatchObject({ messages: 2, duplicates: 1 })
})

test('`devices show` has the last messages: raw, mapped, and what became of them up to the requestId', async () => {
  const pipeline = await start(await folderWith('truck-1,TRK-1,\n'))
  const ts = Date.now() - 60_000
  await publish(
    pipeline,
    'truck-1',
    Array.from({ length: 25 }, (_, n) => ({ ts: ts + n * 1000, v: n })),
  )
  await pipeline.publish('truck-1', 'not json')
  await pipeline.until(() => pipeline.status().totals.delivered === 25)
  const requestIds = new Set(
    pipeline.events.flatMap((e) => (e.kind === 'batch_settled' ? [e.requestId] : [])),
  )
  const { body } = await ask(pipeline, '/devices/truck-1?messages=1&explain=1')
  const { lastMessages, lastMessagesSkipped } = body as {
    lastMessages: (DeviceMessage & { message: string; explained?: Explained })[]
    lastMessagesSkipped: number
  }
  expect(lastMessages.length + lastMessagesSkipped).toBeGreaterThanOrEqual(20)
  const mapped = lastMessages.find(({ became }) => became === 'payloads')
  expect(JSON.parse(mapped?.message ?? '')).toMatchObject({ lat: 52.5, lon: 13.4 })
  const [payload] = mapped?.payloads ?? []
  expect(payload?.payload).toMatchObject({ payloadId: payload?.payloadId, gps: { latitude: 52.5 } })
  expect(requestIds).toContain(payload?.outcomes?.[0]?.requestId)
  expect(payload?.outcomes).toMatchObject([{ outcome: 'delivered' }])
  expect(mapped?.explained?.records[0]?.fields.map(({ field }) => field)).toContain('latitude')

  const url = pipeline.gateway.addresses.ops
  const { stdout } = await runCli(['devices', 'show', 'truck-1', '--url', url])
  expect(stdout).toMatch(/^ {6}[0-9a-f-]{36} delivered .*, requestId [0-9a-f-]{36}$/m)
  const explained = await runCli(['devices', 'show', 'truck-1', '--explain', '--url', url])
  expect(explained.stdout).toMatch(/^ +latitude +lat +52\.5/m)
})

test('a message without a payload is shown with its reason; neither messages nor position of an asset with a privacy profile', async () => {
  const pipeline = await start(await folderWith('truck-2,TRK-2,hidden\n'))
  await pipeline.publish('truck-1', 'not json')
  await publish(pipeline, 'truck-2', [{ ts: Date.now() }])
  const shown = async (name: string) => (await ask(pipeline, `/devices/${name}?messages=1`)).body as unknown
  expect(await shown('truck-1')).toMatchObject({
    lastMessages: [{ message: 'not json', became: 'unmappable', reason: 'NOT_JSON', payloads: [] }],
  })
  expect(await shown('truck-2')).toMatchObject({ messages: 1, lastMessages: [], position: null })
})

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startBridgeSessions, withFormerFilters } from '../../../src/app/bridge-sessions/bridge-sessions.ts'
import { bridgeOptions } from '../../../src/ingest/bridges/bridge-config.ts'
import type { LinkState } from '../../../src/ingest/message-sources/message-sources.ts'
import { configText, positionMap } from '../../support/config-text.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { newFolder } from '../../support/folders.ts'
import { startPipeline } from '../../support/pipeline-world.ts'
import { openScriptedBroker } from '../../support/scripted-broker.ts'
import { parseMqttBridges } from '../../support/mqtt-bridges.ts'

const day = 86_400_000
const clock = createFakeClock()

const bridgesOf = (options: object | object[]) =>
  parseMqttBridges(
    [options]
      .flat()
      .map((one) => ({ name: 'depot', url: 'mqtt://broker', topics: ['t/#'], client_id: 'gw', ...one })),
  ).map(bridgeOptions)

/** One run of the gateway; its stop ends it. */
async function run(spoolPath: string, options: object | object[], state: LinkState = 'connected') {
  const bridges = bridgesOf(options)
  const faults = { losses: 0, lastFault: null, lastAct: null, isPausedLong: false }
  const counters = { messages: 0, lastMessageMs: null, ...faults }
  const link = { state, since: 0, sinceMs: 0, sessionPresent: true, ...counters }
  const sources = bridges.map(({ name, clientIds }) => ({
    name,
    links: clientIds.map((clientId) => ({ ...link, clientId })),
  }))
  const sessions = await startBridgeSessions({ clock, messageSources: () => sources }, { spoolPath, bridges })
  onTestFinished(() => sessions.stop())
  return { left: () => [...sessions.states()], stop: sessions.stop }
}

const four = { share_group: 'g', connections: 4 }
const two = { share_group: 'g', connections: 2 }

test('with fewer connections it names the client ids that are left, until the config has them again', async () => {
  const spoolPath = await newFolder()
  const before = await run(spoolPath, four)
  await before.stop()
  expect(before.left()).toEqual([])
  const fewer = await run(spoolPath, two)
  await fewer.stop()
  expect(fewer.left()).toMatchObject([
    {
      code: 'MESSAGE_SOURCE_AT_RISK',
      messageSource: 'depot',
      risk: 'sessions_left',
      clientId: 'gw-3',
      about: ['gw-3', 'gw-4'],
    },
  ])
  expect(JSON.stringify(fewer.left())).toContain('gw-4')
  expect(JSON.stringify(fewer.left())).not.toContain('gw-2')
  const again = await run(spoolPath, four)
  await again.stop()
  expect(again.left()).toEqual([])
})

test.each([
  ['another client id', { client_id: 'other' }],
  ['another host', { url: 'mqtt://elsewhere' }],
  ['another name and client id', { name: 'yard', client_id: 'other' }],
])('with %s the session of before is named', async (about, options) => {
  const spoolPath = await newFolder()
  await (await run(spoolPath, {})).stop()
  const after = await run(spoolPath, options)
  expect(after.left()).toMatchObject([{ messageSource: 'depot', risk: 'sessions_left', clientId: 'gw' }])
  expect(JSON.stringify(after.left()).includes(' at broker')).toBe(about !== 'another client id')
})

test.each([
  ['another port', {}, { url: 'mqtts://broker:8884' }],
  ['another name', {}, { name: 'yard' }],
  ['session: clean before', { session: 'clean' }, { client_id: 'other' }],
])('with %s nothing is left', async (_, first, second) => {
  const spoolPath = await newFolder()
  await (await run(spoolPath, first)).stop()
  expect((await run(spoolPath, second)).left()).toEqual([])
})

test('two brokers on one machine have a session each under one client id', async () => {
  const spoolPath = await newFolder()
  const one = { topics: ['one/+'] }
  const other = { name: 'yard', url: 'mqtt://broker:1884', topics: ['other/+'] }
  const both = await run(spoolPath, [one, other])
  const file = join(spoolPath, 'bridge-sessions.json')
  await clock.advance(2000)
  await both.stop()
  expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject([
    { bridge: 'depot', port: 1883, filters: ['one/+'] },
    { bridge: 'yard', port: 1884, filters: ['other/+'] },
  ])
  const former = await withFormerFilters({ spoolPath, bridges: bridgesOf([one, other]) })
  expect(former.map(({ formerFilters }) => formerFilters?.get('gw'))).toEqual([['one/+'], ['other/+']])
  const without = await run(spoolPath, one)
  await without.stop()
  expect(without.left()).toMatchObject([{ messageSource: 'yard', risk: 'sessions_left', clientId: 'gw' }])
  expect(JSON.stringify(without.left())).toContain(' at broker:1884')
})

test('it is over after session_expiry without a connection', async () => {
  const spoolPath = await newFolder()
  await (await run(spoolPath, { session_expiry: '1d' })).stop()
  const after = await run(spoolPath, { client_id: 'other' })
  await clock.advance(day - 2000)
  expect(after.left()).toMatchObject([{ risk: 'sessions_left' }])
  await clock.advance(2000)
  expect(after.left()).toEqual([])
})

test('a client id that never connected has no session, and a file that cannot be read is none', async () => {
  const spoolPath = await newFolder()
  await (await run(spoolPath, {}, 'waiting')).stop()
  expect((await run(spoolPath, { client_id: 'other' })).left()).toEqual([])
  const path = join(await newFolder(), 'bridge-sessions.json')
  await writeFile(path, '[{"host":')
  expect((await run(join(path, '..'), {})).left()).toEqual([])
})

test('a daemon whose client id changed has the condition, with what to do', async () => {
  await using broker = await openScriptedBroker()
  const folder = await newFolder()
  const config = (clientId: string) =>
    configText({
      ingest: `{ broker: { listeners: [] }, bridges: [{ name: depot, url: "mqtt://127.0.0.1:${broker.port}", topics: ["t/+"], client_id: ${clientId} }] }`,
      sources: `[{ name: trucks, topic: 't/{device}', map: ${positionMap} }]`,
    })
  const first = await startPipeline({ folder, config: config('old') })
  await first.until(() => first.status().messageSources[0]?.connectedAt !== null)
  await first.gateway.stop('test')
  expect(await readFile(join(folder, 'spool', 'bridge-sessions.json'), 'utf8')).toContain('"old"')
  const second = await startPipeline({ folder, config: config('new') })
  const condition = second.status().conditions.find(({ code }) => code === 'MESSAGE_SOURCE_AT_RISK')
  expect(condition?.what).toContain('"old"')
  expect(condition?.act).toContain('bridge-sessions.json')
})

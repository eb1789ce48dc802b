// ops.time_zone: one zone for all that people read, always shown.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { presentOf } from '../../src/ops/conditions/causes.ts'
import { useTimeZone, zonedTime } from '../../src/std/clock.ts'
import { serveHttp } from '../support/http-server.ts'
import { runCli } from '../support/cli-world.ts'
import { configText } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { stateSamples } from '../support/event-samples.ts'
import { messageOf, startPipeline } from '../support/pipeline-world.ts'

afterEach(() => useTimeZone(undefined))

test('a time names its zone, in winter and in summer, and a wrong one is shown as it is', () => {
  useTimeZone('Europe/Berlin')
  expect(zonedTime('2026-01-15T12:00:00Z')).toBe('2026-01-15 13:00:00 CET')
  expect(zonedTime(Date.parse('2026-07-15T12:00:00Z'))).toBe('2026-07-15 14:00:00 CEST')
  useTimeZone('America/New_York')
  expect(zonedTime('2026-01-15T12:00:00Z')).toBe('2026-01-15 07:00:00 GMT-5')
  expect(zonedTime('never')).toBe('never')
})

test('page and commands have the zone of the gateway, JSON has UTC, and a reload changes it', async () => {
  const config = (zone: string) => configText({ ops: `time_zone: ${zone}` })
  const pipeline = await startPipeline({ config: config('Asia/Kathmandu') })
  await pipeline.publish('truck-1', messageOf(1))
  await pipeline.until(() => pipeline.status().totals.delivered === 1)
  const { ops, control } = pipeline.gateway.addresses
  const read = async (path: string) => {
    const answer = await fetch(`${ops}${path}`, { headers: { accept: 'text/html' } })
    return { zone: answer.headers.get('gateway-time-zone'), text: await answer.text() }
  }
  const page = await read('/page/device?key=truck-1')
  // Some releases of ICU know the city by its old name.
  expect(page.zone).toMatch(/^Asia\/Kat[hm]+andu$/)
  expect(page.text).toMatch(/title="\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GMT\+5:45">/)
  expect(page.text).not.toContain(' UTC')
  const shown = await runCli(['devices', 'show', 'truck-1', '--url', control])
  expect(shown.stdout).toMatch(/^last message +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GMT\+5:45, /m)
  const json = await runCli(['devices', 'show', 'truck-1', '--json', '--url', control])
  expect(json.stdout).toMatch(/"lastSeen":"[^"]+Z"/)
  const muted = await runCli(['devices', 'mute', 'truck-1', '--until', '2099-01-01T00:00', '--url', control])
  expect(muted.stdout).toContain('until 2099-01-01 00:00:00 GMT+5:45')
  await writeFile(join(pipeline.folder, 'gateway.yaml'), config('Europe/Berlin')(pipeline.baseUrl))
  await pipeline.gateway.reload('by the test')
  expect((await read('/page/devices')).zone).toBe('Europe/Berlin')
})

test('what conditions say has times of the zone, which is shown, and none of another one', () => {
  useTimeZone('Asia/Kolkata')
  const texts = Object.values(stateSamples).map((state) => JSON.stringify(presentOf(state).cause))
  expect(texts.filter((text) => text.includes('GMT+5:30')).length).toBeGreaterThan(9)
  expect(texts.filter((text) => /\dT\d\d:\d\d/.test(text))).toEqual([])
})

test('a command of a machine in another zone writes the zone of the gateway', async () => {
  const url = await serveHttp((_request, response) => {
    response.setHeader('gateway-time-zone', 'Asia/Kolkata')
    const times = { since: '2026-01-15T12:00:00.000Z', clearedAt: '2026-01-15T13:00:00.000Z' }
    const cleared = { code: 'SPOOL_FULL', key: null, severity: 'error', what: 'The spool is full.', ...times }
    response.end(JSON.stringify({ conditions: [cleared], more: false }))
  })
  useTimeZone('America/New_York')
  const { stdout } = await runCli(['conditions', '--url', url])
  expect(stdout).toMatch(/^2026-01-15 17:30:00 GMT\+5:30 {2}error SPOOL_FULL/)
})

test('times that a person gives are of the gateway, which says as which it has read them', async () => {
  const urls: string[] = []
  const url = await serveHttp((request, response) => {
    urls.push(request.url ?? '')
    response.setHeader('gateway-time-zone', 'Asia/Kolkata')
    const empty = { entries: [], next: null, oldestAt: null, behind: 0 }
    response.end(JSON.stringify({ changes: [], more: false, damaged: 0, ...empty }))
  })
  useTimeZone('America/New_York')
  const audit = await runCli(['audit', '--since', '2026-01-15T14:03', '--until', '2h', '--url', url])
  expect(audit.stdout).toMatch(
    /^Only since 2026-01-15 14:03:00 GMT\+5:30, until 20\S+ \S+ GMT\+5:30\.\nThe audit log/,
  )
  useTimeZone('America/New_York')
  const ledger = await runCli(['ledger', '--from', '2026-01-15T14:03', '--url', url])
  expect(ledger.stdout).toContain('Only from 2026-01-15 14:03:00 GMT+5:30.')
  const sent = urls.map((one) => Object.fromEntries(new URL(one, url).searchParams))
  expect(sent).toEqual([
    { since: '2026-01-15T14:03', until: '2h' },
    { from: '2026-01-15T14:03', limit: '100' },
  ])
})

test('without a daemon, times are read and shown in the zone of the config', async () => {
  const pipeline = await startPipeline({ config: configText({ ops: 'time_zone: Asia/Kathmandu' }) })
  const { ops, control } = pipeline.gateway.addresses
  expect((await runCli(['reload', '--url', control])).status).toBe(0)
  const count = async (query: string) => {
    const answer = await fetch(`${ops}/audit?${query}`)
    return ((await answer.json()) as { changes: unknown[] }).changes.length
  }
  const minutesAgo = (minutes: number) => zonedTime(Date.now() - minutes * 60_000).slice(0, 16)
  expect(await count(`since=${minutesAgo(2)}`)).toBe(1)
  expect(await count(`until=${minutesAgo(2)}`)).toBe(0)
  await pipeline.gateway.stop('by the test')
  const config = join(pipeline.folder, 'gateway.yaml')
  const audit = async (option: string) => {
    const since = minutesAgo(2)
    useTimeZone('America/New_York')
    return (await runCli(['audit', option, since, '--config', config])).stdout
  }
  expect(await audit('--since')).toMatch(
    /^Only since \S+ \S+ GMT\+5:45\.\nwhen .*\n\S+ \S+ GMT\+5:45 +reload /,
  )
  expect(await audit('--until')).toMatch(
    /^Only until \S+ \S+ GMT\+5:45\.\nThe audit log has no such change\./,
  )
})

test('a zone that is none is a problem of the config', async () => {
  const file = join(await newFolder(), 'gateway.yaml')
  await writeFile(file, 'ops: { time_zone: Europe/Nowhere }\n')
  const { stdout, stderr } = await runCli(['check', '--config', file])
  expect(stdout + stderr).toContain('ops.time_zone must be a name of the IANA database such as Europe/Berlin')
})

// The changes of the control socket: what each request asks of the gateway, what is refused, and who may ask.

import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { BatchOperations } from '../../../src/delivery/types.ts'
import type { QuarantineDecisions } from '../../../src/ingest/ingest.ts'
import type { DaemonControl } from '../../../src/ops/types.ts'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { isoTimes } from '../../../src/std/iso-times.ts'
import { batchView } from '../../support/batch-views.ts'
import { openDeadLettersWorld, refusedPayload, telemetryOf } from '../../support/dead-letters-world.ts'
import { daemonControl, send, startedOps } from '../../support/ops-world.ts'

const id = '00000000-0000-4000-8000-000000000001'
const remapReport = {
  dryRun: false,
  deadLetters: 1,
  remapped: 1,
  payloads: 1,
  duplicates: 0,
  ignored: {},
  kept: 0,
  stillRefused: {},
}
const batchReport = {
  batches: 1,
  payloads: 2,
  newBatches: 0,
  mayBeProcessed: { batches: 1, payloads: 2 },
  waiting: [],
  skipped: [],
}
const released = {
  released: 1,
  payloads: 1,
  duplicates: 0,
  dead: {},
  ignored: {},
  kept: {},
  unlisted: 0,
  releasing: 0,
}

type Changes = { control?: Partial<DaemonControl>; quarantine?: Partial<QuarantineDecisions> }

/** A gateway that notes what is asked of it, and answers with the reports above. */
async function world(changes: Changes = {}) {
  const ops = await startedOps()
  const asked: unknown[] = []
  const noting =
    <Answer>(name: string, answer: Answer) =>
    (...parameters: unknown[]): Promise<Answer> => {
      asked.push([name, ...parameters.filter((one) => !(one instanceof AbortSignal))])
      return Promise.resolve(answer)
    }
  const control = daemonControl({
    reload: noting('reload', {
      kind: 'reloaded',
      sources: 3,
      tookMs: 5,
      restartNeeded: [],
      warnings: [],
    } as const),
    remap: noting('remap', remapReport),
    forget: noting('forget', { values: 1, records: 0 }),
    probe: noting('probe', { now: 7, providers: [] }),
    ...changes.control,
  })
  const quarantine = {
    release: noting('release', released),
    drop: noting('drop', { dryRun: true, messages: 2, reasons: { FUTURE: 2 } }),
    ...changes.quarantine,
  }
  const batches: BatchOperations = {
    providers: ['x'],
    list(selection, limit) {
      asked.push(['list', selection, limit])
      return { now: 0, groups: [], batches: [batchView(id)], more: 0 }
    },
    show: async (batchId) => (batchId === id ? { ...batchView(id), contents: [], answers: [] } : null),
    async run(wanted) {
      asked.push(wanted)
      return { ...batchReport, dryRun: wanted.dryRun, action: wanted.action }
    },
  }
  ops.ops.attach({ control, quarantine, batches })
  return { ...ops, asked }
}

/** Sends a request over TCP whose headers fetch would not let us choose. */
function rawPost(url: string, path: string, headers: Record<string, string>, body = ''): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method: 'POST', headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const nobody = { user: 'unknown', sudoUser: null }
const batchRequest = { parts: null, operator: nobody, dryRun: false, selection: {} }
const all = { device: null, ids: [] }

describe('a change over HTTP', () => {
  test.each<[string, unknown]>([
    ['reload', ['reload', 'by request']],
    ['probe', ['probe']],
    [
      'dead-letters/remap?dryRun=1&reason=NO_TIME&source=a%20b',
      ['remap', { dryRun: true, reason: 'NO_TIME', source: 'a b' }],
    ],
    ['devices/forget?device=truck-7&signal=OBD_SPEED', ['forget', 'truck-7', 'OBD_SPEED']],
    ['devices/forget?device=truck%207', ['forget', 'truck 7', null]],
    ['quarantine/release?device=a%2Fb&restamp=1', ['release', { ...all, device: 'a/b' }, { restamp: true }]],
    ['quarantine/release?all=1', ['release', all, { restamp: false }]],
    ['quarantine/drop?id=x%231', ['drop', { ...all, ids: ['x#1'] }, { dryRun: true }]],
    ['quarantine/drop?device=a&yes=1', ['drop', { ...all, device: 'a' }, { dryRun: false }]],
    [
      'quarantine/drop?all=1&reason=UNKNOWN_DEVICE&yes=1',
      ['drop', { ...all, reason: 'UNKNOWN_DEVICE' }, { dryRun: false }],
    ],
    [`batches/retry?id=${id}&id=b`, { ...batchRequest, action: 'retry', selection: { ids: [id, 'b'] } }],
    ['batches/retry?all=1&dryRun=1', { ...batchRequest, action: 'retry', dryRun: true }],
    [
      'batches/reissue?reason=repeated',
      { ...batchRequest, action: 'reissue', selection: { reasons: ['repeated'] }, dryRun: true },
    ],
    [
      'batches/split?provider=x&olderThanMs=5000&parts=3&yes=1',
      { ...batchRequest, action: 'split', selection: { provider: 'x', olderThanMs: 5000 }, parts: 3 },
    ],
    ['batches/mark-delivered?all=1&yes=1', { ...batchRequest, action: 'mark-delivered' }],
    ['batches/drop?all=1&yes=1&dryRun=1', { ...batchRequest, action: 'drop', dryRun: true }],
    ['batches/drop?all=1&discard=1&yes=1', { ...batchRequest, action: 'discard' }],
  ])('%s is asked of the gateway', async (path, wanted) => {
    await using ops = await world()
    expect((await ops.post(`/control/${path}`)).status).toBe(200)
    expect(ops.asked).toEqual([wanted])
  })

  test('is answered with its report when it is done, and has the operator', async () => {
    await using ops = await world()
    const answerOf = async (path: string, headers = {}) =>
      JSON.parse((await ops.post(`/control/${path}`, { headers })).text) as unknown
    expect(await answerOf('reload')).toMatchObject({ kind: 'reloaded', sources: 3 })
    expect(await answerOf('probe')).toEqual({ now: '1970-01-01T00:00:00.007Z', providers: [] })
    expect(await answerOf('dead-letters/remap')).toEqual(remapReport)
    expect(await answerOf('devices/forget?device=a')).toEqual({
      device: 'a',
      signal: null,
      forgotten: 1,
      records: 0,
    })
    expect(await answerOf('quarantine/release?device=a')).toEqual(released)
    expect(await answerOf('quarantine/drop?device=a')).toMatchObject({ dryRun: true })
    await answerOf('batches/retry?all=1', { 'gateway-user': 'root', 'gateway-sudo-user': 'alice' })
    expect(ops.asked.at(-1)).toMatchObject({ operator: { user: 'root', sudoUser: 'alice' } })
  })

  test('is not made by GET, nor by an invalid request, nor over TCP without users', async () => {
    await using ops = await world()
    const wrong: [number, string[]][] = [
      [404, ['other', '', 'dead-letters', 'quarantine/forget?device=a', 'batches/burn?all=1']],
      [400, ['devices/forget?signal=X', 'devices/forget?device=x&all=1']],
      [400, ['dryrun=1', 'dryRun=yes', 'limit=5'].map((query) => `dead-letters/remap?${query}`)],
      [
        400,
        [
          'release',
          'drop',
          'drop?all=1',
          'drop?yes=1',
          'release?device=a&restamp=yes',
          'release?all=1&id=x',
        ].map((path) => `quarantine/${path}`),
      ],
      [
        400,
        [
          'retry',
          'retry?provider=nosuch',
          'retry?provider=x&provider=x',
          'drop?yes=1',
          'retry?reason=other',
          'split?all=1&parts=1',
          'retry?colour=red',
        ].map((path) => `batches/${path}`),
      ],
    ]
    for (const [status, paths] of wrong)
      for (const path of paths) expect((await ops.post(`/control/${path}`)).status, path).toBe(status)
    for (const path of ['reload', 'probe', 'quarantine/drop?device=a&yes=1', 'batches/drop?all=1&yes=1']) {
      expect((await ops.ask(`/control/${path}`)).status).toBe(405)
      expect((await ops.ask(`/control/${path}`, { method: 'POST' })).status).toBe(403)
    }
    expect(ops.asked).toEqual([])
  })

  test.each([
    ['a web page', { origin: 'https://example.org' }],
    ['a page that is called as this machine by name', { host: 'gateway.example.org' }],
    ['a proxy', { 'x-forwarded-for': '10.0.0.1' }],
    ['another proxy', { via: '1.1 proxy' }],
  ] as [string, Record<string, string>][])('over TCP is refused to %s', async (_, headers) => {
    await using ops = await world()
    for (const path of ['reload', 'dead-letters/purge?all=1&yes=1', 'dead-letters/show?id=1'])
      expect(await rawPost(ops.url, `/control/${path}`, headers)).toBe(403)
    expect(await rawPost(ops.url, '/control/dead-letters/import', headers, '{}')).toBe(403)
    expect(ops.asked).toEqual([])
  })

  test('reports the error when it fails', async () => {
    const words = { what: 'W.', why: 'a.yaml:3:1  x', act: 'A.' }
    const failing = (code: 'SPOOL_CLOSED' | 'DAEMON_REFUSED') => () =>
      Promise.reject(new GatewayError(code, words))
    await using ops = await world({
      control: {
        reload: async () => ({ kind: 'refused', fault: new GatewayError('CONFIG_INVALID', words) }),
        remap: failing('SPOOL_CLOSED'),
      },
      quarantine: { release: failing('DAEMON_REFUSED'), drop: failing('SPOOL_CLOSED') },
    })
    for (const [path, status, code] of [
      ['reload', 422, 'CONFIG_INVALID'],
      ['quarantine/release?device=a', 422, 'DAEMON_REFUSED'],
      ['dead-letters/remap', 503, 'SPOOL_CLOSED'],
      ['quarantine/drop?device=a', 503, 'SPOOL_CLOSED'],
    ] as const) {
      const refused = await ops.post(`/control/${path}`)
      expect([refused.status, JSON.parse(refused.text)]).toMatchObject([status, { code, ...words }])
    }
  })

  test('ends when the client closes the connection', async () => {
    const [begun, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    await using ops = await world({
      control: {
        remap: (_request, signal) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              aborted.resolve()
              resolve(remapReport)
            })
            begun.resolve()
          }),
      },
    })
    const hangUp = new AbortController()
    const answer = send(ops.ops.control(), '/control/dead-letters/remap', {
      method: 'POST',
      signal: hangUp.signal,
    })
    await begun.promise
    hangUp.abort()
    await expect(answer).rejects.toThrow('abort')
    await aborted.promise
  })

  test('waits until the daemon is ready', async () => {
    await using ops = await startedOps()
    expect((await ops.post('/control/reload')).status).toBe(503)
  })
})

test('batches are listed by provider, reason and age, and shown whole by their id', async () => {
  await using ops = await world()
  expect(await ops.json('/batches?provider=x&reason=stuck&olderThanMs=60&limit=7')).toMatchObject({
    batches: [{ batchId: id }],
  })
  expect(ops.asked).toEqual([['list', { provider: 'x', reasons: ['stuck'], olderThanMs: 60 }, 7]])
  expect((await ops.ask('/batches?reason=other')).status).toBe(400)
  const shown = await ops.post(`/control/batches/show?id=${id}`)
  expect(JSON.parse(shown.text)).toMatchObject({ batchId: id, contents: [] })
  const missing = await ops.post('/control/batches/show?id=none')
  expect([missing.status, missing.text]).toEqual([404, expect.stringContaining('ledger --batch')])
})

describe('dead letters over HTTP', () => {
  async function deadLetters(...devices: string[]) {
    const [letters, ops] = [await openDeadLettersWorld(), await startedOps()]
    ops.ops.attach({ control: daemonControl(), deadLetters: letters.operations })
    await letters.add(...devices.map((device) => refusedPayload(device)))
    const post = (path: string, init?: RequestInit) => ops.post(`/control/dead-letters/${path}`, init)
    return { ...letters, ...ops, post }
  }

  test('are listed by the parameters given, and shown whole on the control socket only', async () => {
    await using ops = await deadLetters('a', 'b')
    expect(await ops.json('/dead-letters?device=b')).toMatchObject({
      scanned: 1,
      deadLetters: [{ device: 'b' }],
    })
    expect(await ops.json('/dead-letters?limit=1')).toMatchObject({
      scanned: 2,
      deadLetters: [{ device: 'a' }],
    })
    expect((await ops.ask('/dead-letters?stage=other')).status).toBe(400)
    const shownId = await ops.idOf('a')
    const shown = JSON.parse((await ops.post(`show?id=${shownId}`)).text) as { deadLetter: object }
    expect(shown).toEqual({ id: shownId, deadLetter: isoTimes(refusedPayload('a')) })
    expect((await ops.ask(`/control/dead-letters/show?id=${shownId}`)).status).toBe(405)
    expect((await ops.post('show?id=nothing')).status).toBe(404)
  })

  test('stay without a selection, and in a purge without yes, which reports what it would delete', async () => {
    await using ops = await deadLetters('a')
    for (const path of ['requeue', 'purge?yes=1', 'export', 'requeue?what=1', 'purge?since=today&yes=1'])
      expect((await ops.post(path)).status).toBe(400)
    for (const path of ['', 'other', 'show/more']) expect((await ops.post(path)).status).toBe(404)
    expect(JSON.parse((await ops.post('purge?all=1')).text)).toMatchObject({ dryRun: true, deadLetters: 1 })
    expect(await ops.left()).toEqual(['a'])
  })

  test('are exported as a stream, which ends when the client closes it', async () => {
    await using ops = await deadLetters(...Array.from({ length: 50 }, (_, n) => `truck-${n}`))
    const { text, headers } = await ops.post('export?all=1')
    expect(headers.get('content-type')).toMatch(/ndjson/)
    expect(text.trimEnd().split('\n')).toHaveLength(50)
    const aborted = new AbortController()
    const response = await send(ops.ops.control(), '/control/dead-letters/export?all=1', {
      method: 'POST',
      signal: aborted.signal,
    })
    aborted.abort()
    await expect(response.text()).rejects.toThrow()
    expect((await ops.ask('/healthz')).status).toBe(200)
  })

  test('are edited and imported by a body; an invalid one is refused with 422, a large one with 413', async () => {
    await using ops = await deadLetters('a')
    const edited = await ops.idOf('a')
    const unfit = await ops.post(`edit?id=${edited}`, { body: '{}' })
    expect([unfit.status, JSON.parse(unfit.text)]).toMatchObject([422, { code: 'DEAD_LETTER_INVALID' }])
    expect((await ops.post('edit?id=gone', { body: '{}' })).status).toBe(422)
    expect((await ops.post(`edit?id=${edited}`, { body: JSON.stringify(telemetryOf('a')) })).status).toBe(200)
    const line = JSON.stringify({ kind: 'payload', provider: 'default', payload: telemetryOf('b') })
    expect(JSON.parse((await ops.post('import', { body: line })).text)).toMatchObject({ payloads: 1 })
    expect(await ops.sent()).toEqual([telemetryOf('a'), telemetryOf('b')])
    const large = await ops.post('import', { body: 'x'.repeat(9 * 1024 ** 2) }).catch(() => ({ status: 413 }))
    expect(large.status).toBe(413)
    expect((await ops.post('remap', { body: 'x' })).status).toBe(413)
  })
})

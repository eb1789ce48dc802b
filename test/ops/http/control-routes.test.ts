import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { RemapRequest } from '../../../src/ingest/ingest.ts'
import type { DaemonControl } from '../../../src/ops/types.ts'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { get, opsWorld, send } from '../../support/ops-world.ts'

const report = {
  dryRun: false,
  deadLetters: 1,
  remapped: 1,
  payloads: 1,
  duplicates: 0,
  ignored: {},
  kept: 0,
  stillRefused: {},
}

async function world(changes: Partial<DaemonControl> = {}) {
  const ops = opsWorld()
  const asked: (RemapRequest | string)[] = []
  const control: DaemonControl = {
    async reload(cause) {
      asked.push(cause)
      return { kind: 'reloaded', sources: 3, tookMs: 5, restartNeeded: [], warnings: [] }
    },
    async remap(wanted) {
      asked.push(wanted)
      return report
    },
    mute: () => 0,
    snapshotsFolder: '/var/lib/gateway/snapshots',
    forget: () => Promise.reject(new Error('unexpected call')),
    check: () => Promise.reject(new Error('unexpected call')),
    probe: () => Promise.resolve({ now: 1, providers: [] }),
    ...changes,
  }
  await ops.ops.start()
  ops.ops.attach({ control })
  const [url, socket] = [ops.ops.url() ?? '', ops.ops.control() ?? '']
  return {
    url,
    socket,
    asked,
    post: (path: string, headers: Record<string, string> = {}) =>
      get(socket, path, { method: 'POST', headers }),
    [Symbol.asyncDispose]: () => ops[Symbol.asyncDispose](),
  }
}

/** Sends a request whose headers fetch would not let us choose. */
function rawPost(url: string, path: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method: 'POST', headers }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    sent.on('error', reject)
    sent.end()
  })
}

describe('a change over HTTP', () => {
  test('forgets a device, or one signal of it, and refuses a request that names none', async () => {
    const forgotten: (string | null)[][] = []
    const forget = (device: string, signal: string | null) => {
      forgotten.push([device, signal])
      return Promise.resolve({ values: forgotten.length, records: 0 })
    }
    await using daemon = await world({ forget })
    const one = await daemon.post('/control/devices/forget?device=truck-7&signal=OBD_LIFETIME_ODOMETER')
    expect([one.status, JSON.parse(one.text)]).toEqual([
      200,
      { device: 'truck-7', signal: 'OBD_LIFETIME_ODOMETER', forgotten: 1, records: 0 },
    ])
    expect((await daemon.post('/control/devices/forget?device=truck%207')).status).toBe(200)
    expect((await daemon.post('/control/devices/forget?signal=X')).status).toBe(400)
    expect((await daemon.post('/control/devices/forget?device=x&all=1')).status).toBe(400)
    expect(forgotten).toEqual([
      ['truck-7', 'OBD_LIFETIME_ODOMETER'],
      ['truck 7', null],
    ])
  })

  test('is requested with POST, and answered when it is done', async () => {
    await using ops = await world()
    expect(JSON.parse((await ops.post('/control/reload')).text)).toMatchObject({
      kind: 'reloaded',
      sources: 3,
    })
    const remapped = await ops.post('/control/dead-letters/remap?dryRun=1&reason=NO_TIME&source=a%20b')
    expect([remapped.status, JSON.parse(remapped.text)]).toEqual([200, report])
    expect(ops.asked).toEqual(['by request', { dryRun: true, reason: 'NO_TIME', source: 'a b' }])
  })

  test('is not made by GET, nor by an invalid request', async () => {
    await using ops = await world()
    expect((await get(ops.url, '/control/reload')).status).toBe(405)
    for (const path of ['/control/other', '/control/', '/control/dead-letters'])
      expect((await ops.post(path)).status).toBe(404)
    for (const query of ['dryrun=1', 'dryRun=yes', 'limit=5'])
      expect((await ops.post(`/control/dead-letters/remap?${query}`)).status).toBe(400)
    expect(ops.asked).toEqual([])
  })

  test.each([
    ['a program of this machine', {}],
    ['a web page', { origin: 'https://example.org' }],
    ['a page that is called as this machine by name', { host: 'gateway.example.org' }],
    ['a proxy', { 'x-forwarded-for': '10.0.0.1' }],
    ['another proxy', { via: '1.1 proxy' }],
  ])('over TCP is refused to %s', async (_, headers) => {
    await using ops = await world()
    expect(await rawPost(ops.url, '/control/reload', headers)).toBe(403)
    expect(ops.asked).toEqual([])
  })

  test('reports the error when it fails', async () => {
    const fault = new GatewayError('CONFIG_INVALID', { what: 'W.', why: 'a.yaml:3:1  x', act: 'A.' })
    await using ops = await world({
      reload: async () => ({ kind: 'refused', fault }),
      remap: () => Promise.reject(new GatewayError('SPOOL_CLOSED', { what: 'W.', why: 'Y.', act: 'A.' })),
    })
    const refused = await ops.post('/control/reload')
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
      422,
      { code: 'CONFIG_INVALID', what: 'W.', why: 'a.yaml:3:1  x', act: 'A.' },
    ])
    expect((await ops.post('/control/dead-letters/remap')).status).toBe(503)
  })

  test('ends when the client closes the connection', async () => {
    let began = () => {}
    const begun = new Promise<void>((resolve) => {
      began = resolve
    })
    let ended = () => {}
    const aborted = new Promise<void>((resolve) => {
      ended = resolve
    })
    await using ops = await world({
      remap: (_request, signal) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            ended()
            resolve(report)
          })
          began()
        }),
    })
    const hangUp = new AbortController()
    const answer = send(ops.socket, '/control/dead-letters/remap', { method: 'POST', signal: hangUp.signal })
    await begun
    hangUp.abort()
    await expect(answer).rejects.toThrow('abort')
    await aborted
  })

  test('waits until the daemon is ready', async () => {
    const ops = opsWorld()
    await ops.ops.start()
    expect((await get(ops.ops.control(), '/control/reload', { method: 'POST' })).status).toBe(503)
    await ops.ops.stop()
  })
})

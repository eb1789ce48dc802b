import { describe, expect, test } from 'vitest'
import type { KeptSelection } from '../../../src/ingest/quarantine/quarantine-decisions.ts'
import type { QuarantineDecisions } from '../../../src/ingest/ingest.ts'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { get, opsWorld } from '../../support/ops-world.ts'

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

async function world(changes: Partial<QuarantineDecisions> = {}) {
  const ops = opsWorld()
  const asked: [string, KeptSelection, object][] = []
  const verdicts: Pick<QuarantineDecisions, 'release' | 'drop'> = {
    async release(which, options) {
      asked.push(['release', which, options])
      return released
    },
    async drop(which, options) {
      asked.push(['drop', which, options])
      return { dryRun: options.dryRun, messages: 2, reasons: { FUTURE: 2 } }
    },
    ...changes,
  }
  await ops.ops.start()
  const control = {
    reload: () => Promise.reject(new Error('not asked')),
    remap: () => Promise.reject(new Error('not asked')),
    mute: () => 0,
    snapshotsFolder: '/var/lib/gateway/snapshots',
    forget: () => Promise.reject(new Error('not asked')),
    check: () => Promise.reject(new Error('not asked')),
    probe: () => Promise.reject(new Error('not asked')),
  }
  ops.ops.attach({ control, quarantine: verdicts })
  const post = (query: string, headers: Record<string, string> = {}) =>
    get(ops.ops.control(), `/control/quarantine/${query}`, { method: 'POST', headers })
  return { ops, asked, post, [Symbol.asyncDispose]: () => ops[Symbol.asyncDispose]() }
}

describe('decisions about the quarantine over HTTP', () => {
  test('name the messages, and are answered when they are carried out', async () => {
    await using ops = await world()
    expect(JSON.parse((await ops.post('release?device=a%2Fb&restamp=1')).text)).toEqual(released)
    await ops.post('release?all=1')
    expect(JSON.parse((await ops.post('drop?id=x%231')).text)).toMatchObject({ dryRun: true })
    await ops.post('drop?device=a&yes=1')
    await ops.post('drop?all=1&reason=UNKNOWN_DEVICE&yes=1')
    expect(ops.asked).toEqual([
      ['release', { device: 'a/b', id: null }, { restamp: true }],
      ['release', { device: null, id: null }, { restamp: false }],
      ['drop', { device: null, id: 'x#1' }, { dryRun: true }],
      ['drop', { device: 'a', id: null }, { dryRun: false }],
      ['drop', { device: null, id: null, reason: 'UNKNOWN_DEVICE' }, { dryRun: false }],
    ])
  })

  test('are not carried out for an invalid request, nor over TCP', async () => {
    await using ops = await world()
    const wrong = [
      'release',
      'drop',
      'drop?all=1',
      'drop?yes=1',
      'release?device=a&restamp=yes',
      'release?all=1&id=x',
    ]
    for (const query of wrong) expect((await ops.post(query)).status, query).toBe(400)
    expect((await ops.post('forget?device=a')).status).toBe(404)
    const overTcp = await get(ops.ops.ops.url(), '/control/quarantine/drop?device=a&yes=1', {
      method: 'POST',
    })
    expect(overTcp.status).toBe(403)
    expect((await get(ops.ops.ops.url(), '/control/quarantine/drop?device=a&yes=1')).status).toBe(405)
    expect(ops.asked).toEqual([])
  })

  test('are refused with what to do', async () => {
    const words = { what: 'W.', why: 'Y.', act: 'A.' }
    await using ops = await world({
      release: () => Promise.reject(new GatewayError('DAEMON_REFUSED', words)),
      drop: () => Promise.reject(new GatewayError('SPOOL_CLOSED', words)),
    })
    const refused = await ops.post('release?device=a')
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
      422,
      { code: 'DAEMON_REFUSED', ...words },
    ])
    expect((await ops.post('drop?device=a')).status).toBe(503)
  })
})

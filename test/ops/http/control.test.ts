// The changes of the control socket: what each request asks of the gateway, what is refused, and who may ask.

import { describe, expect, onTestFinished, test } from 'vitest'
import type { BatchOperations } from '../../../src/delivery/types.ts'
import type { QuarantineDecisions } from '../../../src/ingest/ingest.ts'
import type { DaemonControl } from '../../../src/ops/types.ts'
import { GatewayError } from '../../../src/std/gateway-error.ts'
import { batchView } from '../../support/batch-views.ts'
import { openDeadLettersWorld, refusedPayload, telemetryOf } from '../../support/dead-letters-world.ts'
import { daemonControl, send, startedOps } from '../../support/ops-world.ts'
import { rawRequest } from '../../support/raw-http.ts'
import { stepCases } from '../../support/step-cases.ts'

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

const nobody = { user: 'unknown', sudoUser: null }
const batchRequest = { parts: null, operator: nobody, dryRun: false, selection: {} }

async function controlWorld() {
  const ops = await world()
  onTestFinished(() => ops[Symbol.asyncDispose]())
  return { ops, asked: ops.asked }
}

type Ops = Awaited<ReturnType<typeof controlWorld>>

stepCases(import.meta.filename, controlWorld, {
  asks: async ({ ops, asked }: Ops, [path, wanted]: [string, unknown]) => {
    expect((await ops.post(`/control/${path}`)).status).toBe(200)
    expect(asked).toEqual([wanted])
  },
  asksOfBatches: async ({ ops, asked }: Ops, [path, wanted]: [string, object]) => {
    expect((await ops.post(`/control/batches/${path}`)).status).toBe(200)
    expect(asked).toEqual([{ ...batchRequest, ...wanted }])
  },
  refused: async ({ ops, asked }: Ops, [path, status]: [string, number]) => {
    expect((await ops.post(`/control/${path}`)).status).toBe(status)
    expect(asked).toEqual([])
  },
  notByTcp: async ({ ops, asked }: Ops, [path, headers]: [string, Record<string, string>]) => {
    const sent = { method: 'POST', headers, body: path.includes('import') ? '{}' : '' }
    expect((await rawRequest(ops.url, `/control/${path}`, sent)).status).toBe(403)
    expect(asked).toEqual([])
  },
  notByGet: async ({ ops }: Ops, path: string) =>
    expect((await ops.ask(`/control/${path}`)).status).toBe(405),
})

describe('a change over HTTP', () => {
  test('has the operator', async () => {
    await using ops = await world()
    const headers = { 'gateway-user': 'root', 'gateway-sudo-user': 'alice' }
    expect((await ops.post('/control/batches/retry?all=1', { headers })).status).toBe(200)
    expect(ops.asked).toMatchObject([{ operator: { user: 'root', sudoUser: 'alice' } }])
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

describe('dead letters over HTTP', () => {
  async function deadLetters(...devices: string[]) {
    const [letters, ops] = [await openDeadLettersWorld(), await startedOps()]
    ops.ops.attach({ control: daemonControl(), deadLetters: letters.operations })
    await letters.add(...devices.map((device) => refusedPayload(device)))
    const post = (path: string, init?: RequestInit) => ops.post(`/control/dead-letters/${path}`, init)
    return { ...letters, ...ops, post }
  }

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
